"""Reads folders of Marian's own files, as in the zips that OPUS-MT publishes.

Reference: Junczys-Dowmunt et al. (2018), arXiv:1804.00344.
"""

import functools
import reprlib
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..storage.files import path_inside, read_inside
from .array_files import open_npz
from .arrays import Arrays
from .marian_folder import (
    OUTPUT_BIAS,
    OUTPUT_TABLE,
    SOURCE_TABLE,
    TARGET_TABLE,
    MarianFolder,
    existing,
    name_in_layer,
    number,
    read_options,
)
from .marian_vocabulary import Words, make_words

DECODER = "decoder.yml"
_OPTIONS = "special:model.yml"  # an array of the weights
_DEEPEST = 100  # lists in one another
_FALSE = ("false",)
# Options that change the model -> the values that are read.
_SUPPORTED: dict[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "right-left": _FALSE,
    "input-types": ([], ["sequence", "sequence"]),
    "lemma-dim-emb": ("0",),
    "lemma-dependency": ("",),
    "factors-combine": ("sum",),
    "output-omit-bias": _FALSE,
    "ulr": _FALSE,
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-attention-mask": ("default",),
    "transformer-train-position-embeddings": _FALSE,
    "transformer-disable-position-embeddings": _FALSE,
    "transformer-no-affine": _FALSE,
    "transformer-no-bias": _FALSE,
    "transformer-no-projection": _FALSE,
    "transformer-rnn-projection": _FALSE,
    "transformer-pool": _FALSE,
    "transformer-tied-layers": ([],),
    "transformer-ffn-activation": ("swish", "relu", "gelu"),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
}
_GUIDED = "transformer-guided-alignment-layer"
_INNER = "transformer-dim-ffn"
_DECODER_INNER = "transformer-decoder-dim-ffn"
_NUMBERS = {
    "state_size": ("dim-emb",),
    "transformer_enc_depth": ("enc-depth",),
    "transformer_dec_depth": ("dec-depth",),
    "transformer_ffn_hidden_size": (_INNER, _DECODER_INNER),
    "transformer_num_heads": ("transformer-heads",),
}
_RENAMED = _NUMBERS | {"transformer_activation": ("transformer-ffn-activation",)}
_PARTS = {
    "transformer_positions": "tensor2tensor",
    "transformer_norm_epsilon": 1e-9,
    # Rates of dropout are no part of a trained model; OPUS-MT drops nothing here.
    "transformer_dropout_attn": 0.0,
    "transformer_dropout_relu": 0.0,
}
_OUTPUT = "decoder_ff_logit_out_Wt"
_OLD_OUTPUT = "decoder_ff_logit_out_W"  # its transpose
_BLOCKS = {
    "self_attention": "self_",
    "cross_attention": "context_",
    "self_attention_residual": "self_Wo_",
    "cross_attention_residual": "context_Wo_",
    "feed_forward": "ffn_",
    "feed_forward_residual": "ffn_ffn_",
}
_WEIGHTS = {
    "queries": "Wq",
    "keys": "Wk",
    "values": "Wv",
    "output": "Wo",
    "queries_bias": "bq",
    "keys_bias": "bk",
    "values_bias": "bv",
    "output_bias": "bo",
    "inner_kernel": "W1",
    "inner_bias": "b1",
    "outer_kernel": "W2",
    "outer_bias": "b2",
    "gamma": "ln_scale",
    "beta": "ln_bias",
}


def read_marian(folder: Path) -> MarianFolder:
    """Reads the description of a model from a folder of `decoder.yml`, vocabularies and weights."""
    decoder_path = folder / DECODER
    decoder = _read_yaml(decoder_path, read_inside(decoder_path, folder))
    # They lie beside it, wherever they were.
    weights, *vocabularies = [
        existing(folder, Path(name).name)
        for name in (
            *_texts(decoder_path, decoder, "models", 1),
            *_texts(decoder_path, decoder, "vocabs", 2),
        )
    ]
    arrays = open_npz(path_inside(weights, folder))
    where = weights.with_name(f"{weights.name}, {_OPTIONS}")
    theirs = _read_model_options(where, arrays)
    ties = {name for name in theirs if name.startswith("tied-") and theirs[name] == "true"}
    is_shared = bool(ties & {"tied-embeddings-all", "tied-embeddings-src"})
    is_tied = bool(ties & {"tied-embeddings-all", "tied-embeddings"})
    target_table = "Wemb" if is_shared else "decoder_Wemb"
    output_table = _OLD_OUTPUT if _OLD_OUTPUT in arrays.shapes else _OUTPUT
    counts = [number(where, "dim-vocabs", each) for each in _texts(where, theirs, "dim-vocabs", 2)]
    source, target = _read_words(vocabularies, folder, counts)
    tables = {
        SOURCE_TABLE: "Wemb" if is_shared else "encoder_Wemb",
        TARGET_TABLE: target_table,
        OUTPUT_TABLE: target_table if is_tied else output_table,
        OUTPUT_BIAS: "decoder_ff_logit_out_b",
    }
    return MarianFolder(
        path=where,
        options=_read_options(where, theirs),
        words=(source, target),
        start=None,
        arrays=arrays,
        tables=tables,
        name_in_layer=functools.partial(
            name_in_layer, "{side}_l{layer}_{block}{weight}", _BLOCKS, _WEIGHTS
        ),
        transposed=(_OLD_OUTPUT,),
        files=[weights],
        note=f"Marian never chooses {target.names[1]}: translate with --suppress_unknown to do the "
        "same",
    )


def _read_yaml(path: Path, content: bytes) -> dict[str, Any]:
    """Reads a mapping, in which no word is taken for a number or a truth value."""
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    depth = 0
    try:
        for event in yaml.parse(content, loader):  # the loader's recursion in C may crash
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise ValueError(f"more than {_DEEPEST} lists in one another")
        found = yaml.load(content, loader)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise UserError(f"{path} must have entries `name: value`; copy it again")
    return found


def _texts(path: Path, given: dict[str, Any], option: str, count: int) -> list[str]:
    found = given.get(option)
    is_list = isinstance(found, list) and len(found) == count
    if not is_list or not all(isinstance(each, str) and each for each in found):
        raise UserError(
            f"{path}: {option} is {reprlib.repr(found)[:100]}, and must be a list of {count}; "
            "only one model with one source and one target can be imported"
        )
    return found


def _read_model_options(path: Path, arrays: Arrays) -> dict[str, Any]:
    """Returns the options in the weights, and takes them off the arrays."""
    if arrays.shapes.pop(_OPTIONS, None) is None:
        raise UserError(
            f"{arrays.path} has no {_OPTIONS}, so it is no model of Marian; give the .npz that "
            "Marian wrote"
        )
    return _read_yaml(path, arrays.read(_OPTIONS).tobytes().rstrip(b"\0"))


def _read_options(path: Path, theirs: dict[str, Any]) -> dict[str, Any]:
    if theirs.get(_DECODER_INNER, "0") == "0":  # that of the encoder
        theirs = theirs | {_DECODER_INNER: theirs.get(_INNER)}
    ours = read_options(path, theirs, _SUPPORTED, _RENAMED, "Marian")
    ours |= {name: number(path, names[0], ours[name]) for name, names in _NUMBERS.items()}
    layer = theirs.get(_GUIDED, "last")
    aligns = ours["transformer_dec_depth"] if layer == "last" else number(path, _GUIDED, layer)
    return ours | _PARTS | {"transformer_alignment_layer": aligns}


def _read_words(paths: list[Path], folder: Path, counts: list[int]) -> list[Words]:
    found = []
    for path, count in zip(paths, counts, strict=True):
        if path.suffix not in (".yml", ".yaml", ".json"):
            raise UserError(
                f"{path} is no list of words in YAML or JSON, and factored vocabularies and "
                "SentencePiece models cannot be imported in its place; translate this model with "
                "Marian"
            )
        ids = _read_yaml(path, read_inside(path, folder))
        numbers = {piece: number(path, piece, ids[piece]) for piece in ids}
        found.append(make_words(path, numbers, count))
    return found
