"""Reads folders of Marian's own files, as in the zips that OPUS-MT publishes.

Reference: Junczys-Dowmunt et al. (2018), arXiv:1804.00344.
"""

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
    rows_of_tables,
)
from .marian_vocabulary import LARGEST, Words, make_words

DECODER = "decoder.yml"
_OPTIONS = "special:model.yml"  # an array of the weights
_FALSE = ("false",)
# Options that change the model -> the values that are read. One that is missing has the first.
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
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
}
_RENAMED = {
    "state_size": "dim-emb",
    "transformer_enc_depth": "enc-depth",
    "transformer_dec_depth": "dec-depth",
    "transformer_ffn_hidden_size": "transformer-dim-ffn",
    "transformer_num_heads": "transformer-heads",
}
_ACTIVATIONS = ("swish", "relu", "gelu")
_PARTS = {
    "transformer_positions": "tensor2tensor",
    "transformer_norm_epsilon": 1e-9,
    # Rates of dropout are no part of a trained model; OPUS-MT drops nothing here.
    "transformer_dropout_attn": 0.0,
    "transformer_dropout_relu": 0.0,
}
_BIAS = "decoder_ff_logit_out_b"
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
    decoder = _read_yaml(decoder_path, read_inside(decoder_path, folder, LARGEST))
    (weights,) = _named(decoder_path, decoder, "models", 1)
    vocabularies = _named(decoder_path, decoder, "vocabs", 2)
    arrays = open_npz(path_inside(weights, folder))
    theirs = _read_model_options(arrays)
    where = weights.with_name(f"{weights.name}, {_OPTIONS}")
    options = _read_options(where, theirs)
    is_all = _flag(theirs, "tied-embeddings-all")
    is_shared = is_all or _flag(theirs, "tied-embeddings-src")
    options["tie_encoder_decoder_embeddings"] = is_shared
    options["tie_decoder_embeddings"] = is_all or _flag(theirs, "tied-embeddings")
    counts = [_number(where, "dim-vocabs", each) for each in _pair(where, theirs)]
    target = _read_words(vocabularies[1], folder, counts[1])
    is_same = vocabularies[0] == vocabularies[1]
    source = target if is_same else _read_words(vocabularies[0], folder, counts[0])
    tables = {
        SOURCE_TABLE: "Wemb" if is_shared else "encoder_Wemb",
        TARGET_TABLE: "Wemb" if is_shared else "decoder_Wemb",
        OUTPUT_TABLE: _OLD_OUTPUT if _OLD_OUTPUT in arrays.shapes else _OUTPUT,
        OUTPUT_BIAS: _BIAS,
    }

    def name_of(variable: str) -> str:
        if variable in tables:
            return tables[variable]
        return name_in_layer(variable, "{side}_l{layer}_{block}{weight}", _BLOCKS, _WEIGHTS)

    shapes = {each: arrays.shapes[each] for each in arrays.shapes if each != _OPTIONS}
    return MarianFolder(
        where,
        options,
        (source, target),
        arrays._replace(shapes=shapes),
        name_of,
        _OLD_OUTPUT.__eq__,
        rows_of_tables((source, target), None, is_shared),
        [weights],
        [
            f"Marian never chooses {target.names[1]}: translate with --suppress_unknown to do the "
            "same"
        ],
    )


def _read_yaml(path: Path, content: bytes) -> dict[str, Any]:
    """Returns a mapping whose values are texts, lists and mappings: no word is taken for a
    number."""
    import yaml

    try:
        found = yaml.load(content, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise UserError(f"{path} must have entries `name: value`; copy it again")
    return found


def _named(path: Path, decoder: dict[str, Any], option: str, count: int) -> list[Path]:
    """Returns the files that an option names; they lie beside `path`, wherever they were."""
    names = decoder.get(option)
    if not isinstance(names, list) or len(names) != count or not all(map(_is_text, names)):
        raise UserError(
            f"{path}: {option} is {str(names)[:100]}, and must be a list of {count} file"
            f"{'s' * (count > 1)}; import each model of an ensemble from a folder of its own"
        )
    return [existing(path.parent, Path(name).name) for name in names]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _read_model_options(arrays: Arrays) -> dict[str, Any]:
    if _OPTIONS not in arrays.shapes:
        raise UserError(
            f"{arrays.path} has no {_OPTIONS}, so it is no model of Marian; give the .npz that "
            "Marian wrote"
        )
    content = arrays.read(_OPTIONS).tobytes().rstrip(b"\0")
    return _read_yaml(arrays.path.with_name(f"{arrays.path.name}, {_OPTIONS}"), content)


def _read_options(path: Path, theirs: dict[str, Any]) -> dict[str, Any]:
    for name, values in _SUPPORTED.items():
        if (found := theirs.get(name, values[0])) not in values:
            raise UserError(
                f"{path}: {name} is {found!r}, and only {' and '.join(map(repr, values))} can be "
                "imported; translate this model with Marian"
            )
    ours: dict[str, Any] = {
        name: _number(path, option, theirs.get(option)) for name, option in _RENAMED.items()
    }
    inner = ours["transformer_ffn_hidden_size"]
    if _number(path, "dim-ffn", theirs.get("transformer-decoder-dim-ffn", "0")) not in (0, inner):
        raise UserError(
            f"{path}: transformer-decoder-dim-ffn differs from transformer-dim-ffn, {inner}; "
            "translate this model with Marian"
        )
    activation = theirs.get("transformer-ffn-activation", "swish")
    if activation not in _ACTIVATIONS:
        raise UserError(
            f"{path}: transformer-ffn-activation is {activation!r}, and only "
            f"{', '.join(_ACTIVATIONS)} can be imported; translate this model with Marian"
        )
    ours["transformer_activation"] = activation
    return ours | _PARTS


def _number(path: Path, option: str, value: Any) -> int:
    if not isinstance(value, str) or not value.isdecimal() or len(value) > 9:
        raise UserError(
            f"{path}: {option} is {str(value)[:100]}, and must be a number; copy the file again"
        )
    return int(value)


def _flag(theirs: dict[str, Any], name: str) -> bool:
    return theirs.get(name, "false") == "true"


def _pair(path: Path, theirs: dict[str, Any]) -> list[Any]:
    counts = theirs.get("dim-vocabs")
    if not isinstance(counts, list) or len(counts) != 2:
        raise UserError(
            f"{path}: dim-vocabs is {str(counts)[:100]}, and only models of one source and one "
            "target can be imported; translate this model with Marian"
        )
    return counts


def _read_words(path: Path, folder: Path, count: int) -> Words:
    if path.suffix not in (".yml", ".yaml", ".json"):
        raise UserError(
            f"{path} is no list of words in YAML or JSON, and factored vocabularies and "
            "SentencePiece models cannot be imported in its place; translate this model with Marian"
        )
    ids = _read_yaml(path, read_inside(path, folder, LARGEST))
    return make_words(path, {each: _number(path, each, ids[each]) for each in ids}, count)
