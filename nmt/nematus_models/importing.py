"""Imports Nematus's checkpoints, v0.3 to master: the weights, without the optimizer's state."""

import glob
import re
import shutil
from collections.abc import Collection
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from ..config import TEXTS, Config, make_config
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
    "tie_decoder_embeddings",
    "tie_encoder_decoder_embeddings",
    "label_smoothing",
    "loss_function",
    "maxlen",
    "batch_size",
    "token_batch_size",
    "learning_schedule",
    "warmup_steps",
    "plateau_steps",
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "clip_c",
    "gradient_aggregation_steps",
    "exponential_smoothing",
    "translation_maxlen",
)
_NO_WEIGHT = re.compile(rf".*/Adam(_1)?|beta[12]_power|time|{rnn_names.UNUSED}")
_SMOOTH = "_smooth"  # at the end of the names of the averages in a checkpoint
# Option that changes the model -> the only value that our model supports.
_SUPPORTED = {
    "factors": 1,
    "softmax_mixture_size": 1,
    "rnn_lexical_model": False,
    "lexical_model": False,
}


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
        (rnn_names.TRANSPOSED,),
        "give --dictionaries SOURCE TARGET that it was trained with",
        {},
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
    """Returns our configuration for Nematus's options in a JSON file.

    Names of a checkpoint's variables tell a kind of normalization that the options do not name.
    """
    options = read_json(path)
    model_type = options.get("model_type") or "rnn"
    is_rnn = model_type == "rnn"
    refused = rnn_names.refusals(options)
    refused += [
        f"{name} is {options[name]!r}; only {supported!r} is supported"
        for name, supported in _SUPPORTED.items()
        if options.get(name) not in (None, supported)
    ]
    if refused:
        raise UserError(f"{path}: {'; '.join(refused)}")
    ours = {name: given(options, _RENAMED.get(name, [name])) for name in (*_RENAMED, *_SAME)}
    sizes = ours["source_vocab_sizes"]
    if isinstance(sizes, list) and len(sizes) == 1:  # one for each factor
        ours["source_vocab_sizes"] = sizes[0]
    for name in ("source_vocab_sizes", "target_vocab_size", "clip_c", "token_batch_size"):
        # In Nematus, this turns the option off.
        if isinstance(ours[name], int | float) and ours[name] <= 0:
            ours[name] = 0.0 if name == "clip_c" else None
    # MRT, and versions before the option, count sentences too.
    if ours["loss_function"] != "per-token-cross-entropy":
        ours["loss_function"] = "cross-entropy"
    schedule = ours["learning_schedule"] or "constant"
    ours |= {
        field.name: None  # without effect
        for field in fields(Config)
        if schedule not in field.metadata["with"].get("learning_schedule", (schedule,))
    }
    parts = {name: options.get(name) for name in transformer_names.OPTIONS}
    ours |= rnn_names.options(options) if is_rnn else transformer_names.PARTS | parts
    ours |= {name: options.get(name) or "" for name in TEXTS}
    ours |= {
        "model_type": model_type,
        "clip_counts": "words" if "model_type" in options else None,  # an option since v0.4
        "dictionaries": _dictionaries(dictionaries or options.get("dictionaries"), path),
        "layer_normalization_type": _kind(options, is_rnn, variables),
    }
    return make_config({name: value for name, value in ours.items() if value is not None})


def _kind(options: dict[str, Any], is_rnn: bool, variables: Collection[str]) -> str:
    if is_rnn and not given(
        options, ("rnn_layer_normalization", "use_layer_norm", "layer_normalisation")
    ):
        return "none"
    kind = options.get("layer_normalization_type") or rnn_names.kind_of(variables)
    # A patched master has a faster class of the same norm.
    return "rmsnorm" if kind == "rmsnorm_fast" else kind


def _dictionaries(named: Any, path: Path) -> tuple[str, ...]:
    """Returns the paths of the two dictionaries: as named, or else beside the options."""
    if not isinstance(named, list | tuple) or len(named) != 2:
        raise UserError(
            f"{path} names {repr(named)[:100]}, which are not 2 dictionaries; give --dictionaries "
            "SOURCE TARGET"
        )
    found = []
    for name in map(str, named):
        places = [each for each in (Path(name), path.parent / Path(name).name) if each.is_file()]
        if not places or not name.endswith(".json"):
            raise UserError(
                f"dictionaries must be here or beside {path}, in files that end in .json (rename a "
                f"copy), but not so: {name}; give --dictionaries SOURCE TARGET"
            )
        found.append(str(places[0]))
    return tuple(found)


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
    """Reads the weights of a checkpoint, without the optimizer's state and unused biases."""
    if not Path(f"{checkpoint}.index").is_file():
        raise UserError(
            f"there is no checkpoint {checkpoint}: {checkpoint}.index is missing; "
            "give the name without extension, for example model-20 for model-20.index"
        )
    for path in checkpoint.parent.glob(f"{glob.escape(checkpoint.name)}.data-*"):
        if not path.is_file():  # reading a pipe would never end
            raise UserError(f"{path} is not a regular file; copy the checkpoint again")
    try:
        reader = tf.train.load_checkpoint(str(checkpoint))
        names = reader.get_variable_to_shape_map()
        return {name: reader.get_tensor(name) for name in names if not _NO_WEIGHT.fullmatch(name)}
    # The reader raises no type of its own.
    except (tf.errors.OpError, LookupError, ValueError, RuntimeError) as error:
        raise UserError(
            f"{checkpoint} is damaged or not a checkpoint: {error}; copy it again"
        ) from None


_NAMES = {"rnn": rnn_names.nematus_name, "transformer": transformer_names.nematus_name}
