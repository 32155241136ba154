"""Applies presets and defaults that follow from other options, and finds conflicts."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .decoding.options import limit_conflicts
from .errors import UserError
from .normalization import KINDS, may_center
from .storage.files import read_json

_PRESETS = Path(__file__).parent / "presets"  # a file of options for each
LOSSES = ("cross-entropy", "per-token-cross-entropy")
# Options with a value for each file or pattern of a text.
PER_FILE = {
    "dataset_weights": "source_dataset",
    "target_prefixes": "target_dataset",
    "valid_target_prefixes": "valid_target_dataset",
}


def preset_names() -> list[str]:
    """Returns the names that `--preset` takes. A release never changes the meaning of a name."""
    return sorted(path.stem for path in _PRESETS.glob("*.json"))


def complete(config: type, given: dict[str, Any]) -> dict[str, Any]:
    """Adds the options of a preset, and the defaults that depend on other options."""
    fields = dataclasses.fields(config)
    defaults = {field.name: field.default for field in fields}
    given = dict(given)
    name = given.pop("preset", None)
    if name is not None and name not in preset_names():
        raise UserError(f"--preset is {name!r}; it must be one of {', '.join(preset_names())}")
    preset = read_json(_PRESETS / f"{name}.json") if name else {}
    if given.get("batch_size"):
        preset.pop("token_batch_size", None)
    options = preset | given
    for field in fields:  # another schedule or model may need other options than the preset's
        needed = field.metadata["with"].items()
        fits = [options.get(name, defaults[name]) in values for name, values in needed]
        if field.name not in given and not all(fits):
            options.pop(field.name, None)
    if options.get("token_batch_size"):
        options.setdefault("loss_function", LOSSES[1])
    if options.get("model_type") == "transformer":
        given_sizes = (given[name] for name in ("state_size", "embedding_size") if name in given)
        size = next(given_sizes, preset.get("state_size", 512))
        options |= {"state_size": size, "embedding_size": size} | given
        options.setdefault("layer_normalization_type", "layernorm")
    return options


def conflicts(config: Any) -> Iterator[str]:
    """Yields a message for each combination of options that is not allowed."""
    yield from limit_conflicts(config)
    for name, text in PER_FILE.items():
        values = getattr(config, name)
        files = getattr(config, text)
        count = 1 if isinstance(files, str) else len(files)
        if values and len(values) != count:
            yield (
                f"--{name} has {len(values)} values and --{text} {count} files or patterns; give "
                "one for each"
            )
    for name in ("rnn_dec_high_transition_depth", "rnn_dec_deep_context"):
        if config.rnn_dec_depth == 1 and getattr(config, name) != getattr(type(config), name):
            yield f"--{name} has no effect with --rnn_dec_depth 1; leave it out"
    has_center = config.layer_normalization_center is not None
    if has_center and not may_center(config.layer_normalization_type):
        kinds = ", ".join(filter(may_center, KINDS))
        yield f"--layer_normalization_center needs --layer_normalization_type {kinds}; leave it out"
    if config.reload_training_progress and not config.reload:
        yield "--reload_training_progress needs --reload DIR"
    if config.reload_other_vocabularies and (not config.reload or config.reload_training_progress):
        yield "--reload_other_vocabularies needs --reload DIR without --reload_training_progress"
    if config.model_type == "transformer":
        yield from _transformer_conflicts(config)


def _transformer_conflicts(config: Any) -> Iterator[str]:
    size = config.state_size
    heads = config.transformer_num_heads
    if config.embedding_size != size:
        yield (
            f"--embedding_size is {config.embedding_size} and --state_size {size}; a Transformer "
            "needs equal ones"
        )
    if size % heads:
        yield f"--state_size is {size}; it must be a multiple of --transformer_num_heads ({heads})"
    if size % 2 or size < 4:
        yield f"--state_size is {size}; position encodings need an even number of at least 4"
