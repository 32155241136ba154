"""Import of Nematus's checkpoints, v0.3 to master: the weights, without the optimizer's state."""

import os
import re
import shutil
from collections.abc import Collection
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ..config import Config, make_config
from ..errors import UserError
from ..storage.checkpoints import BEST, save_checkpoint
from ..storage.files import atomic_directory, read_json
from ..system import build_system
from . import rnn_names, transformer_names
from .arrays import Arrays, match
from .rnn_names import given

# Our option -> its names in Nematus. Dropout rates are handled separately.
_RENAMED = {
    "embedding_size": ("embedding_size", "dim_word"),
    "state_size": ("state_size", "dim"),
    "source_vocab_sizes": ("source_vocab_sizes", "source_vocab_size", "n_words_src"),
    "target_vocab_size": ("target_vocab_size", "n_words"),
    "learning_rate": ("learning_rate", "lrate"),
}
_SAME = (
    *(
        "tie_decoder_embeddings",
        "tie_encoder_decoder_embeddings",
        "label_smoothing",
        "loss_function",
        "maxlen",
    ),
    *(
        "batch_size",
        "token_batch_size",
        "learning_schedule",
        "warmup_steps",
        "plateau_steps",
        "adam_beta1",
    ),
    *(
        "adam_beta2",
        "adam_epsilon",
        "clip_c",
        "gradient_aggregation_steps",
        "exponential_smoothing",
    ),
    *("translation_maxlen",),
)
_NO_WEIGHT = re.compile(rf".*/Adam(_1)?|beta[12]_power|time|{rnn_names.UNUSED}").fullmatch
_SMOOTH = "_smooth"  # at the end of the names of the averages in a checkpoint
_TEXTS = ("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset")
# Option that changes the model -> the only value that our model supports.
_SUPPORTED = {"factors": 1, "softmax_mixture_size": 1}


def import_checkpoint(checkpoint: Path, to: Path, dictionaries: tuple[Path, Path] | None) -> None:
    """Writes a model directory with the weights of a Nematus checkpoint.

    Args:
        checkpoint: Path of the checkpoint without extension, as for Nematus's `-m`.
        dictionaries: Source and target dictionary; `None` takes those that the checkpoint's options
            name.
    """
    arrays = _read_arrays(checkpoint)
    options_path = _options_path(checkpoint)
    config = read_checkpoint_config(options_path, dictionaries, arrays)
    if config.exponential_smoothing:  # Nematus translates with these too
        arrays = {
            name.removesuffix(_SMOOTH): arrays[name] for name in arrays if name.endswith(_SMOOTH)
        }
    if config.model_type == "transformer":
        # Master ties the output table to the target embedding by --tie_decoder_embeddings, v0.4 and
        # v0.5 by --tie_encoder_decoder_embeddings. So the variables decide.
        config = replace(config, tie_decoder_embeddings=transformer_names.UNTIED not in arrays)
    system = build_system(config, config.dictionaries)
    weights = match(
        system.model.variables,
        Arrays(checkpoint, {name: arrays[name].shape for name in arrays}, arrays.__getitem__),
        _NAMES[config.model_type],
        rnn_names.TRANSPOSED.__eq__,
        _ADVICE,
    )
    with atomic_directory(to) as directory:
        for side, path in zip(("source", "target"), config.dictionaries, strict=True):
            shutil.copyfile(path, directory / f"{side}.json")
        shutil.copyfile(options_path, directory / "nematus.json")
        config.save(directory / "config.json")
        save_checkpoint(directory / BEST, weights, {}, system.fingerprint)


def read_checkpoint_config(
    path: Path, dictionaries: tuple[Path, Path] | None = None, variables: Collection[str] = ()
) -> Config:
    """Returns our configuration for a JSON file of Nematus's options, and the names of a checkpoint's variables."""
    options = read_json(path)
    model_type = options.get("model_type") or "rnn"
    if not isinstance(model_type, str) or model_type not in _NAMES:
        raise UserError(
            f"{path}: model_type is {model_type!r}; only {' and '.join(_NAMES)} are supported"
        )
    _refuse_unsupported(
        options, _SUPPORTED | (rnn_names.SUPPORTED if model_type == "rnn" else {}), path
    )
    ours = {name: given(options, _RENAMED.get(name, [name])) for name in (*_RENAMED, *_SAME)}
    sizes = ours["source_vocab_sizes"]
    if isinstance(sizes, list):  # one for each factor
        if len(sizes) != 1:
            raise UserError(
                f"{path}: there are {len(sizes)} source vocabulary sizes; only one is supported"
            )
        ours["source_vocab_sizes"] = sizes[0]
    for name in ("source_vocab_sizes", "target_vocab_size", "clip_c", "token_batch_size"):
        if (
            isinstance(ours[name], int | float) and ours[name] <= 0
        ):  # in Nematus, this turns the option off
            ours[name] = 0.0 if name == "clip_c" else None
    ours["model_type"] = model_type
    if (
        ours["loss_function"] != "per-token-cross-entropy"
    ):  # MRT, and versions before the option, count sentences too
        ours["loss_function"] = "cross-entropy"
    ours["clip_counts"] = "words" if "model_type" in options else None  # an option since v0.4
    schedule = ours["learning_schedule"] or "constant"
    needed = {
        field.name: field.metadata["with"].get("learning_schedule", (schedule,))
        for field in fields(Config)
    }
    ours |= {
        name: None for name, schedules in needed.items() if schedule not in schedules
    }  # without effect
    ours |= rnn_names.options(options) if model_type == "rnn" else {}
    if model_type == "transformer":
        ours |= {
            **transformer_names.PARTS,
            **{name: options.get(name) for name in transformer_names.OPTIONS},
        }
    ours |= {name: options.get(name) or "" for name in _TEXTS}
    ours["dictionaries"] = _dictionaries(dictionaries or options.get("dictionaries"), path)
    ours["layer_normalization_type"] = _kind(options, model_type, variables)
    return make_config({name: value for name, value in ours.items() if value is not None})


def _refuse_unsupported(options: dict[str, Any], all_supported: dict[str, Any], path: Path) -> None:
    refused = [
        f"{name} is {options[name]!r}; only {supported!r} is supported"
        for name, supported in all_supported.items()
        if options.get(name) not in (None, supported)
    ]
    if refused := refused + rnn_names.refusals(options):
        raise UserError("\n".join(f"{path}: {why}" for why in refused))


def _kind(options: dict[str, Any], model_type: str, variables: Collection[str]) -> str:
    if model_type == "rnn" and not given(
        options, ("rnn_layer_normalization", "use_layer_norm", "layer_normalisation")
    ):
        return "none"
    kind = options.get("layer_normalization_type") or rnn_names.kind_of(variables)
    return (
        "rmsnorm" if kind == "rmsnorm_fast" else kind
    )  # a faster class of the same norm in a patched master


def _dictionaries(named: Any, path: Path) -> tuple[str, ...]:
    """Returns the paths of the two dictionaries, each as it is named or else beside the options at `path`."""
    if not isinstance(named, list | tuple) or [isinstance(name, str | Path) for name in named] != [
        True,
        True,
    ]:
        raise UserError(
            f"{path} names {repr(named)[:100]}, which are not 2 dictionaries; give --dictionaries SOURCE TARGET"
        )
    places = {str(name): [Path(name), path.parent / Path(name).name] for name in named}
    found = {name: [str(each) for each in pair if each.is_file()] for name, pair in places.items()}
    if wrong := [name for name in found if not found[name] or not name.endswith(".json")]:
        raise UserError(
            f"dictionaries must be here or beside {path}, in files that end in .json (rename a copy), but not so: "
            f"{' and '.join(wrong)}; give --dictionaries SOURCE TARGET"
        )
    return tuple(found[str(name)][0] for name in named)


def _options_path(checkpoint: Path) -> Path:
    """Returns MODEL-N.json for checkpoint MODEL-N. Nematus v0.3 writes only MODEL.json."""
    names = [checkpoint.name, re.sub(r"-\d+$", "", checkpoint.name)]
    paths = [checkpoint.with_name(f"{name}.json") for name in dict.fromkeys(names)]
    for path in paths:
        if path.is_file():
            return path
    raise UserError(
        f"the options of {checkpoint} are missing: there is no {' or '.join(map(str, paths))}; "
        "copy the JSON file that Nematus wrote when the training began"
    )


def _read_arrays(checkpoint: Path) -> dict[str, np.ndarray]:
    """Reads the weights of a checkpoint, without the state of the optimizer and biases that nothing reads."""
    if not Path(f"{checkpoint}.index").is_file():
        raise UserError(
            f"there is no checkpoint {checkpoint}: {checkpoint}.index is missing; "
            "give the name without extension, for example model-20 for model-20.index"
        )
    for path in checkpoint.parent.iterdir():
        if (
            path.name.startswith(f"{checkpoint.name}.data-") and not path.is_file()
        ):  # reading a pipe would never end
            raise UserError(f"{path} is not a regular file; copy the checkpoint again")
    try:
        reader = tf.train.load_checkpoint(os.fspath(checkpoint))
        return {
            name: reader.get_tensor(name)
            for name in reader.get_variable_to_shape_map()
            if not _NO_WEIGHT(name)
        }
    except (
        tf.errors.OpError,
        LookupError,
        ValueError,
        RuntimeError,
    ) as error:  # the reader raises no type of its own
        raise UserError(
            f"{checkpoint} is damaged or not a checkpoint: {error}; copy it again"
        ) from None


_ADVICE = "give --dictionaries SOURCE TARGET that it was trained with"
_NAMES = {"rnn": rnn_names.nematus_name, "transformer": transformer_names.nematus_name}
