"""Reads folders of Marian models in the format of Hugging Face's transformers.

Reference: Tiedemann & Thottingal (2020), EAMT.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..model.transformer_layers import sinusoids
from ..storage.files import path_inside, read_json
from .array_files import open_hdf5, open_safetensors
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
from .marian_vocabulary import END, Words, make_words

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "swish",
    "swish": "swish",
}
# Options that change the model -> the values that are read.
_SUPPORTED = {
    "model_type": ("marian",),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
    "static_position_embeddings": (True,),
    "scale_embedding": (True,),
    "activation_function": tuple(_ACTIVATIONS),
}
_RENAMED = {  # our option -> theirs; two, if both sides must have the same
    "state_size": ("d_model",),
    "transformer_enc_depth": ("encoder_layers",),
    "transformer_dec_depth": ("decoder_layers",),
    "transformer_ffn_hidden_size": ("encoder_ffn_dim", "decoder_ffn_dim"),
    "transformer_num_heads": ("encoder_attention_heads", "decoder_attention_heads"),
    "transformer_activation": ("activation_function",),
}
_RATES = {
    "transformer_dropout_embeddings": "dropout",
    "transformer_dropout_residual": "dropout",
    "transformer_dropout_attn": "attention_dropout",
    "transformer_dropout_relu": "activation_dropout",
}
_SHARED = "model.shared.weight"
_SOURCE = "model.encoder.embed_tokens.weight"
_TARGET = "model.decoder.embed_tokens.weight"
_HEAD = "lm_head.weight"
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_ROUNDED = 0.01  # more than bfloat16 rounds a sine
_BLOCKS = {
    "self_attention": "self_attn.",
    "cross_attention": "encoder_attn.",
    "self_attention_residual": "self_attn_layer_norm.",
    "cross_attention_residual": "encoder_attn_layer_norm.",
    "feed_forward": "",
    "feed_forward_residual": "final_layer_norm.",
}
_WEIGHTS = {
    "queries": "q_proj.weight",
    "keys": "k_proj.weight",
    "values": "v_proj.weight",
    "output": "out_proj.weight",
    "queries_bias": "q_proj.bias",
    "keys_bias": "k_proj.bias",
    "values_bias": "v_proj.bias",
    "output_bias": "out_proj.bias",
    "inner_kernel": "fc1.weight",
    "inner_bias": "fc1.bias",
    "outer_kernel": "fc2.weight",
    "outer_bias": "fc2.bias",
    "gamma": "weight",
    "beta": "bias",
}
_CONVERT = (
    "it is a pickle, which may run any code when it is read; where PyTorch and transformers are, "
    'convert it: python -c "from transformers import MarianMTModel as M; '
    "M.from_pretrained(F := '{0}').save_pretrained(F)\""
)


def read_transformers(folder: Path) -> MarianFolder:
    """Reads the description of a model from a folder of `config.json`, vocabularies and weights."""
    path = existing(folder, "config.json")
    given = {name: each for name, each in read_json(path, folder).items() if each is not None}
    theirs = {"model_type": None, "scale_embedding": False} | given
    options = read_options(path, theirs, _SUPPORTED, _RENAMED, "transformers")
    options["transformer_activation"] = _ACTIVATIONS[options["transformer_activation"]]
    options |= {name: theirs[rate] for name, rate in _RATES.items() if rate in theirs}
    words, start = _read_words(path, theirs)
    files, arrays = _open_weights(folder)
    options["transformer_positions"] = _kind_of_positions(arrays)
    tables = _names_of_tables(theirs, arrays, words, options["state_size"])
    copies = {_SHARED, _SOURCE, _TARGET, _HEAD, *_POSITIONS} - set(tables.values())
    shapes = {name: shape for name, shape in arrays.shapes.items() if name not in copies}
    return MarianFolder(
        path=path,
        options=options,
        words=words,
        start=start,
        arrays=arrays._replace(shapes=shapes),
        tables=tables,
        name_in_layer=functools.partial(
            name_in_layer, "model.{side}.layers.{index}.{block}{weight}", _BLOCKS, _WEIGHTS
        ),
        transposed=("proj.weight", "fc1.weight", "fc2.weight"),
        files=files,
    )


def _read_words(path: Path, config: dict[str, Any]) -> tuple[tuple[Words, Words], int]:
    """Returns the words of both sides, and the row that translations begin with."""
    folder = path.parent
    is_shared = config.get("share_encoder_decoder_embeddings", True)
    names = ("vocab_size", "eos_token_id", "decoder_start_token_id")
    count, end, start = (number(path, name, config.get(name)) for name in names)
    target_count = number(path, "decoder_vocab_size", config.get("decoder_vocab_size", count))
    source_path = existing(folder, "vocab.json")
    own_path = folder / "target_vocab.json"
    target_path = own_path if own_path.is_file() and not is_shared else source_path
    source = make_words(source_path, read_json(source_path, folder), count)
    target = make_words(target_path, read_json(target_path, folder), target_count)
    for words in (source, target):
        if words.rows[0] != end:
            raise UserError(
                f"{path}: eos_token_id is {end}, but {words.path.name} gives {END} the id "
                f"{words.rows[0]}; give the files of one model"
            )
    if start >= target_count:
        raise UserError(
            f"{path}: decoder_start_token_id is {start}, and the target has {target_count} rows; "
            "save the model with transformers again"
        )
    return (source, target), start


def _open_weights(folder: Path) -> tuple[list[Path], Arrays]:
    """Returns the files of the weights in a folder, and their arrays."""
    whole = folder / "model.safetensors"
    index = folder / "model.safetensors.index.json"
    of_tensorflow = folder / "tf_model.h5"
    pickled = folder / "pytorch_model.bin"
    if whole.is_file():
        return [whole], open_safetensors(whole, [path_inside(whole, folder)])
    if index.is_file():
        shards = _shards(index)
        return shards, open_safetensors(index, shards)
    if of_tensorflow.is_file():
        return [of_tensorflow], open_hdf5(path_inside(of_tensorflow, folder))
    if pickled.exists():
        raise UserError(f"{pickled} is not read: {_CONVERT.format(folder)}")
    raise UserError(
        f"{folder} has neither model.safetensors nor tf_model.h5; download the whole model again"
    )


def _shards(index: Path) -> list[Path]:
    folder = index.parent
    names = read_json(index, folder).get("weight_map")
    values = list(names.values()) if isinstance(names, dict) else []
    if not values or not all(isinstance(name, str) and name == Path(name).name for name in values):
        raise UserError(f"{index} must have a weight_map to files beside it; copy it again")
    return [path_inside(existing(folder, name), folder) for name in sorted(set(values))]


def _kind_of_positions(arrays: Arrays) -> str:
    """Returns which sinusoids the positions are, if the file has them; its own are what counts."""
    tables = [arrays.read(name) for name in _POSITIONS if _is_table(arrays.shapes.get(name, ()))]
    for kind in ("paper", "tensor2tensor"):
        expected = [sinusoids(0, *table.shape, kind).numpy() for table in tables]
        pairs = zip(tables, expected, strict=True)
        if all(np.abs(a - b).max(initial=0) < _ROUNDED for a, b in pairs):
            return kind
    raise UserError(
        f"{arrays.path} has positions that are no sinusoids, or others on either side; "
        "translate this model with transformers"
    )


def _is_table(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[1] in range(4, 1 << 20, 2)


def _names_of_tables(
    config: dict[str, Any], arrays: Arrays, words: tuple[Words, Words], units: int
) -> dict[str, str]:
    """Returns the array of each table.

    As in transformers, a table of its own counts where it is present and differs from the shared
    one. One that equals it is a copy.
    """
    shape = (words[1].count, units)

    def is_copy(name: str, table: str) -> bool:
        fits = all(arrays.shapes.get(each) == shape for each in (name, table))
        return fits and np.array_equal(arrays.read(name), arrays.read(table))

    def own(name: str, shared: str) -> str:
        return shared if name not in arrays.shapes or is_copy(name, shared) else name

    if config.get("share_encoder_decoder_embeddings", True):
        present = [each for each in (_SHARED, _SOURCE, _TARGET, _HEAD) if each in arrays.shapes]
        shared = present[0] if present else _SHARED
        source = own(_SOURCE, shared)
        target = own(_TARGET, shared)
    else:
        shared = target = _TARGET
        source = target if words[0].path == words[1].path and is_copy(_SOURCE, target) else _SOURCE
    head = own(_HEAD, shared) if config.get("tie_word_embeddings", True) else _HEAD
    return {
        SOURCE_TABLE: source,
        TARGET_TABLE: target,
        OUTPUT_TABLE: target if is_copy(head, target) else head,
        OUTPUT_BIAS: "final_logits_bias",
    }
