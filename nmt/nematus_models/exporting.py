"""Exports to Nematus: writes the checkpoint, options and dictionaries that its scripts read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..config import TEXTS, Config
from ..errors import UserError
from ..storage.files import write_json
from ..system import load_system
from ..text.vocabulary import Vocabulary
from . import rnn_names, transformer_names

_NEVER = -1e9  # bias of a word that is never predicted
_SIDES = {  # tables of words -> the side of their vocabulary
    "encoder/embedding/embeddings": 0,
    "decoder/embedding/embeddings": 1,
    "decoder/output_kernel": 1,
    "decoder/output_bias": 1,
}
_SAME = (  # options with the same name and meaning in master
    *TEXTS,
    "model_type",
    "embedding_size",
    "state_size",
    "layer_normalization_type",
    "tie_decoder_embeddings",
    "tie_encoder_decoder_embeddings",
    "maxlen",
    "batch_size",
    "learning_rate",
    "clip_c",
)
_MAXLEN = 200  # Nematus's own limit of a translation, for models without one
_KINDS = ("none", "layernorm", "rmsnorm", "prmsnorm")  # of Nematus, patched for the last two


class Dictionary(NamedTuple):
    """Holds the vocabulary of a side as Nematus reads it."""

    ids: dict[str, int]
    unknown: int
    size: int  # rows of the embedding


def export_checkpoint(to: Path, directory: Path, version: str) -> None:
    """Writes `to`.index, `to`.data-00000-of-00001, `to`.json and two dictionaries.

    Costs are those of this model. Nematus master reads id 2 as `<UNK>` and, in a Transformer, id 1
    as `<GO>`. If our unknown word has id 1, an RNN gets an extra row for `<GO>` that it never
    predicts. In a Transformer, only an untied source embedding gets such a row. Otherwise the
    unknown word serves as `<GO>`, and the dictionary has no `<UNK>`.

    Args:
        to: Path of the checkpoint without extension, as for Nematus's `-m`.
        version: `v0.3`, or `master`, also for v0.5, where a Transformer must tie all its
            embeddings.
    """
    ends = ("source.json", "target.json", "json", "index", "data-00000-of-00001")
    files = [Path(f"{to}.{end}") for end in ends]
    for path in files:
        if path.exists():
            raise UserError(f"{path} exists already; give another name than {to}")
    system = load_system(directory)
    config = system.config
    words = [
        _dictionary(directory / f"{side}{Path(name).suffix}", vocabulary)
        for side, name, vocabulary in zip(
            ("source", "target"), config.dictionaries, system.vocabularies, strict=True
        )
    ]
    _refuse(config, words, version)
    # A table that gives logits without a bias cannot take a row for `<GO>` without changing a
    # probability.
    is_rnn = config.model_type == "rnn"
    has_room = (is_rnn or not config.tie_encoder_decoder_embeddings, is_rnn)
    inserted = [
        version == "master" and side.unknown == 1 and room
        for side, room in zip(words, has_room, strict=True)
    ]
    named = {
        _name(variable.path, config, version): _with_row(variable.path, variable.numpy(), inserted)
        for variable in system.model.variables
    }
    if rnn_names.TRANSPOSED in named:
        named[rnn_names.TRANSPOSED] = named[rnn_names.TRANSPOSED].T
    if version == "v0.3":
        named |= _adam_state(named, config)
    new_words = [
        _with_specials(side, more, version) for side, more in zip(words, inserted, strict=True)
    ]
    to.parent.mkdir(parents=True, exist_ok=True)
    options = _options(config, new_words, version) | {
        "dictionaries": [str(path.resolve()) for path in files[:2]]
    }
    try:
        tf.raw_ops.SaveV2(
            prefix=str(to),
            tensor_names=list(named),
            shape_and_slices=[""] * len(named),
            tensors=[tf.constant(array) for array in named.values()],
        )
        for path, content in zip(files, [*(each.ids for each in new_words), options], strict=False):
            write_json(path, content, escaped=False)
    except BaseException:
        for path in files:
            path.unlink(missing_ok=True)
        raise


def _dictionary(path: Path, vocabulary: Vocabulary) -> Dictionary:
    if path.suffix == ".json":
        ids = json.loads(path.read_text(encoding="utf-8"))
        inside = {word: i for word, i in ids.items() if i < vocabulary.size}
        return Dictionary(inside, vocabulary.unknown, vocabulary.size)
    pieces = vocabulary.words
    if vocabulary.unknown == 2:
        pieces[:3] = ["<EOS>", "<GO>", "<UNK>"]
    return Dictionary(
        {piece: i for i, piece in enumerate(pieces)}, vocabulary.unknown, vocabulary.size
    )


def _refuse(config: Config, words: Sequence[Dictionary], version: str) -> None:
    kind = config.layer_normalization_type
    is_transformer = config.model_type == "transformer"
    is_old = version == "v0.3"
    computed_otherwise = (config.rnn_dec_depth, config.rnn_enc_transition_depth) != (1, 1)
    reasons = {
        f"it has no {kind}": kind not in _KINDS,
        "it has no --layer_normalization_center": config.layer_normalization_center is not None,
        "it has no Transformer": is_transformer and is_old,
        "it cannot tie the embeddings of encoder and decoder": is_old
        and config.tie_encoder_decoder_embeddings,
        "it computes --rnn_dec_depth and --rnn_enc_transition_depth above 1 differently": is_old
        and computed_otherwise,
    }
    reasons |= {
        f"it cannot read an unknown word of id {side.unknown}": side.unknown
        not in ((1,) if is_old else (1, 2))
        for side in words
    }
    if is_transformer and not is_old:
        reasons |= {
            "its Transformers always normalize (--layer_normalization_type)": kind == "none",
            "its Transformers fail without --tie_decoder_embeddings": (
                not config.tie_decoder_embeddings
            ),
            "its Transformers need <GO> at id 1": any(
                x.unknown == 2 and x.ids.get("<GO>") != 1 for x in words
            ),
            **{
                f"its Transformers lack --{name} {getattr(config, name)}": getattr(config, name)
                != value
                for name, value in transformer_names.PARTS.items()
            },
        }
    if refused := [reason for reason, holds in reasons.items() if holds]:
        raise UserError(f"Nematus {version} cannot read this model: {'; '.join(refused)}")


def _with_row(path: str, array: np.ndarray, inserted: list[bool]) -> np.ndarray:
    """Returns an array with a row for `<GO>` at id 1, if it is a table of words."""
    if path in _SIDES and inserted[_SIDES[path]]:
        array = np.insert(array, 1, _NEVER if array.ndim == 1 else array[1], axis=0)
    return array


def _with_specials(words: Dictionary, inserted: bool, version: str) -> Dictionary:
    """Returns a vocabulary with the special words of a version.

    `inserted` shifts all ids but the first by one.
    """
    if words.unknown == 2:
        return words
    others = {word: i + inserted for word, i in words.ids.items() if i > 1}
    if (
        version == "v0.3"
    ):  # which knows its special words by their ids, so a word may have their names
        return Dictionary({"eos": 0, "UNK": 1} | others, 1, words.size)
    special = {"<EOS>": 0, "<GO>": 1} | ({"<UNK>": 2} if inserted else {})
    return Dictionary(special | others | special, len(special) - 1, words.size + inserted)


def _name(path: str, config: Config, version: str) -> str:
    """Returns the name of a variable in a version of Nematus."""
    if config.model_type == "transformer":
        depths = {"encoder": config.transformer_enc_depth, "decoder": config.transformer_dec_depth}
        last = [
            f"transformer_model/{side}/layer_{depths[side]}/final_transform/" for side in depths
        ]
        return transformer_names.nematus_name(path, last)
    name = rnn_names.nematus_name(path, ())
    is_gain = version == "v0.3" and name.endswith("/scale")
    return f"{name.removesuffix('scale')}new_std" if is_gain else name


def _adam_state(arrays: dict[str, np.ndarray], config: Config) -> dict[str, np.ndarray]:
    """Returns the state of an optimizer before its first update, which v0.3 expects."""
    zeros = {name: np.zeros_like(array) for name, array in arrays.items()}
    return {
        **{f"{name}/Adam": array for name, array in zeros.items()},
        **{f"{name}/Adam_1": array for name, array in zeros.items()},
        "beta1_power": np.float32(config.adam_beta1),
        "beta2_power": np.float32(config.adam_beta2),
        "time": np.int32(0),
    }


def _options(config: Config, words: list[Dictionary], version: str) -> dict[str, Any]:
    """Returns the options, without the dictionaries.

    Label smoothing would change the costs that master prints.
    """
    kind = config.layer_normalization_type
    normalizes = kind != "none"
    common = {name: getattr(config, name) for name in _SAME} | {
        "layer_normalization_type": kind if normalizes else "layernorm",
        "model_version": 0.2,
        "factors": 1,
        "source_vocab_sizes": [words[0].size],
        "target_vocab_size": words[1].size,
        "dim_per_factor": [config.embedding_size],
        "output_hidden_activation": config.output_hidden_activation,
        "translation_maxlen": config.translation_maxlen or _MAXLEN,
    }
    if version == "v0.3":
        depths = {names[1]: getattr(config, name) for name, names in rnn_names.DEPTHS.items()}
        common |= {"use_layer_norm": normalizes, "use_dropout": False, "decay_c": 0.0}
        return common | depths | {"valid_batch_size": config.valid_batch_size}
    common |= {
        "rnn_layer_normalization": normalizes,
        "label_smoothing": 0.0,
        "exponential_smoothing": 0.0,
        "gradient_aggregation_steps": config.gradient_aggregation_steps,
    }
    if config.model_type == "transformer":
        return common | {name: getattr(config, name) for name in transformer_names.OPTIONS}
    depths = {name: getattr(config, name) for name in rnn_names.DEPTHS}
    return common | depths | {"rnn_use_dropout": False}
