"""Reads folders of Marian models in the format of Hugging Face's transformers.

Reference: Tiedemann & Thottingal (2020), EAMT.
"""

from collections.abc import Iterator
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
    rows_of_tables,
)
from .marian_vocabulary import END, Words, make_words

# Options that change the model -> the only value that is read, and the one that they have where
# they are missing.
_SUPPORTED = {
    "model_type": ("marian", None),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_final_layer_norm": (False, False),
    "static_position_embeddings": (True, True),
    "scale_embedding": (True, False),
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
_ACTIVATIONS = {
    "silu": "swish",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
}
_SHARED = "model.shared.weight"
_SOURCE = "model.encoder.embed_tokens.weight"
_TARGET = "model.decoder.embed_tokens.weight"
_HEAD = "lm_head.weight"
_BIAS = "final_logits_bias"
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
    theirs = read_json(path, folder)
    options = _read_options(path, theirs)
    words, start = _read_words(folder, theirs)
    files, arrays = _open_weights(folder)
    options["transformer_positions"] = _kind_of_positions(arrays)
    tables = _names_of_tables(theirs, arrays, words, options["state_size"])
    options["tie_encoder_decoder_embeddings"] = tables[SOURCE_TABLE] == tables[TARGET_TABLE]
    options["tie_decoder_embeddings"] = tables[OUTPUT_TABLE] == tables[TARGET_TABLE]
    copies = {_SHARED, _SOURCE, _TARGET, _HEAD, *_POSITIONS} - set(tables.values())
    kept = {name: shape for name, shape in arrays.shapes.items() if name not in copies}

    def name_of(variable: str) -> str:
        if variable in tables:
            return tables[variable]
        return name_in_layer(
            variable, "model.{side}.layers.{index}.{block}{weight}", _BLOCKS, _WEIGHTS
        )

    return MarianFolder(
        path,
        options,
        words,
        arrays._replace(shapes=kept),
        name_of,
        lambda name: name.endswith(("proj.weight", "fc1.weight", "fc2.weight")),
        rows_of_tables(words, start, options["tie_encoder_decoder_embeddings"]),
        files,
        [],
    )


def _read_options(path: Path, theirs: dict[str, Any]) -> dict[str, Any]:
    for name, (supported, default) in _SUPPORTED.items():
        if (found := theirs.get(name, default)) != supported:
            raise UserError(
                f"{path}: {name} is {found!r}, and only {supported!r} can be imported; "
                "translate this model with transformers"
            )
    ours = {}
    for name, names in _RENAMED.items():
        values = [theirs.get(each) for each in names]
        if None in values or values[:1] != values[-1:]:
            raise UserError(
                f"{path}: {' and '.join(names)} must be given{' and equal' * len(names[1:])}, and "
                f"are {' and '.join(map(repr, values))}; translate this model with transformers"
            )
        ours[name] = values[0]
    activation = ours["transformer_activation"]
    if isinstance(activation, str):
        ours["transformer_activation"] = _ACTIVATIONS.get(activation, activation)
    rates = {name: theirs[rate] for name, rate in _RATES.items() if theirs.get(rate) is not None}
    return ours | rates


def _read_words(folder: Path, config: dict[str, Any]) -> tuple[tuple[Words, Words], int]:
    """Returns the words of both sides, and the row that translations begin with."""
    path = folder / "config.json"
    source_path = existing(folder, "vocab.json")
    count = _number(path, config, "vocab_size")
    start = _number(path, config, "decoder_start_token_id")
    source = make_words(source_path, read_json(source_path, folder), count)
    target = source
    if not config.get("share_encoder_decoder_embeddings", True):
        target_path = folder / "target_vocab.json"
        target_path = target_path if target_path.is_file() else source_path
        if config.get("decoder_vocab_size") is not None:
            count = _number(path, config, "decoder_vocab_size")
        if (target_path, count) != (source_path, source.count):
            target = make_words(target_path, read_json(target_path, folder), count)
    elif config.get("decoder_vocab_size") not in (None, count):
        raise UserError(
            f"{path}: decoder_vocab_size is {config['decoder_vocab_size']!r} and vocab_size "
            f"{count}, although both sides share their table; save the model with transformers "
            "again"
        )
    end = _number(path, config, "eos_token_id")
    for words in (source, target):
        if words.rows[0] != end:
            raise UserError(
                f"{path}: eos_token_id is {end}, but {words.path.name} gives {END} the id "
                f"{words.rows[0]}; give the files of one model"
            )
    if not start < count:
        raise UserError(
            f"{path}: decoder_start_token_id is {start}, and the target has {count} rows; "
            "save the model with transformers again"
        )
    return (source, target), start


def _number(path: Path, config: dict[str, Any], name: str) -> int:
    """Returns a count or an id, which may be given as a list of one."""
    found = config.get(name)
    number = found[0] if isinstance(found, list) and len(found) == 1 else found
    if type(number) is not int or number < 0:
        raise UserError(
            f"{path}: {name} is {str(found)[:100]}, and must be one number, 0 or more; "
            "save the model with transformers again"
        )
    return number


def _open_weights(folder: Path) -> tuple[list[Path], Arrays]:
    """Returns the files of the weights in a folder, and their arrays."""
    whole = folder / "model.safetensors"
    index = folder / "model.safetensors.index.json"
    of_tensorflow = folder / "tf_model.h5"
    if whole.is_file():
        return [whole], open_safetensors(whole, [path_inside(whole, folder)])
    if index.is_file():
        shards = list(_shards(index, folder))
        return shards, open_safetensors(index, shards)
    if of_tensorflow.is_file():
        return [of_tensorflow], open_hdf5(path_inside(of_tensorflow, folder))
    if (pickled := folder / "pytorch_model.bin").exists():
        raise UserError(f"{pickled} is not read: {_CONVERT.format(folder)}")
    raise UserError(
        f"{folder} has neither model.safetensors nor tf_model.h5; download the whole model again"
    )


def _shards(index: Path, folder: Path) -> Iterator[Path]:
    names = read_json(index, folder).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise UserError(f"{index} must have a weight_map from arrays to files; copy it again")
    for name in sorted(set(names.values())):
        if name != Path(name).name:
            raise UserError(f"{index} names {name!r}, which is no file beside it; copy it again")
        yield path_inside(existing(folder, name), folder)


def _kind_of_positions(arrays: Arrays) -> str:
    """Returns which sinusoids the positions are, if the file has them; its own are what counts."""
    kinds = {"paper": True, "tensor2tensor": True}
    for name in _POSITIONS:
        shape = arrays.shapes.get(name, ())
        if len(shape) == 2 and shape[1] % 2 == 0 and shape[1] > 2:
            found = arrays.read(name)
            for kind in kinds:
                expected = sinusoids(0, *shape, kind).numpy()
                kinds[kind] &= bool(np.abs(found - expected).max(initial=0) < _ROUNDED)
    for kind, is_right in kinds.items():
        if is_right:
            return kind
    raise UserError(
        f"{arrays.path} has positions that are no sinusoids, or others on either side; "
        "translate this model with transformers"
    )


def _names_of_tables(
    config: dict[str, Any], arrays: Arrays, words: tuple[Words, Words], units: int
) -> dict[str, str]:
    """Returns the array of each table.

    As in transformers, a table of its own counts where it is present and differs from the shared
    one. One that equals it is a copy.
    """

    def is_copy(name: str, table: str) -> bool:
        return _equal(arrays, name, table, (words[1].count, units))

    def own(name: str, shared: str) -> str:
        return shared if name not in arrays.shapes or is_copy(name, shared) else name

    if config.get("share_encoder_decoder_embeddings", True):
        present = [each for each in (_SHARED, _SOURCE, _TARGET, _HEAD) if each in arrays.shapes]
        shared = next(iter(present), _SHARED)
        source = own(_SOURCE, shared)
        target = own(_TARGET, shared)
    else:
        shared = target = _TARGET
        source = target if words[0] is words[1] and is_copy(_SOURCE, target) else _SOURCE
    head = own(_HEAD, shared) if config.get("tie_word_embeddings", True) else _HEAD
    if is_copy(head, target):
        head = target
    return {SOURCE_TABLE: source, TARGET_TABLE: target, OUTPUT_TABLE: head, OUTPUT_BIAS: _BIAS}


def _equal(arrays: Arrays, name: str, other: str, shape: tuple[int, int]) -> bool:
    """Returns whether two arrays have this shape and the same numbers."""
    if any(arrays.shapes.get(each) != shape for each in (name, other)):
        return False
    return name == other or np.array_equal(arrays.read(name), arrays.read(other))
