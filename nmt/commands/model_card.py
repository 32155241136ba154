"""The model card of an export."""

import argparse
import importlib.metadata
import math
from pathlib import Path
from typing import Any

from ..config import Config, read_config, read_options
from ..decoding.options import CONSTANT, CONSTRAINTS, FACTOR, DecodingOptions
from ..system import System
from ..training.progress import Progress


def describe(system: System, arguments: argparse.Namespace, options: DecodingOptions) -> dict[str, Any]:
    """Returns the model card of a system, exported with these arguments; an unknown value is `None`."""
    config = system.config
    configs = [read_config(directory) for directory in arguments.model]
    texts = (config.source_dataset, config.target_dataset)
    source, target = arguments.languages or map(_language, texts)
    return {
        "languages": {"source": source, "target": target},
        "architecture": _of_all(configs, "model_type"),
        "normalization": _of_all(configs, "layer_normalization_type"),
        "sizes": {
            "embedding": _of_all(configs, "embedding_size"),
            "state": _of_all(configs, "state_size"),
            "source_vocabulary": system.source_vocabulary.size,
            "target_vocabulary": system.target_vocabulary.size,
            "parameters": sum(math.prod(variable.shape) for variable in system.model.variables),
        },
        "search": {
            "beam_size": options.beam_size,
            "normalization_alpha": options.normalization_alpha,
            "longest_translation": options.translation_maxlen
            or {"times_source_tokens": FACTOR, "plus_tokens": max(CONSTANT, options.min_length)},
            **{name: getattr(options, name) for name in CONSTRAINTS},
        },
        "models": [
            {"validation": _best_validation(directory), "trained_with": _read(directory, "versions.json")}
            for directory in arguments.model
        ],
        "exported_with": {name: importlib.metadata.version(name) for name in ("tensorflow", "tensorflow-text")},
    }


def _of_all(configs: list[Config], option: str) -> Any:
    """Returns the value of an option, or the values of all models of an ensemble if they differ."""
    values = [getattr(config, option) for config in configs]
    return values[0] if len(set(values)) == 1 else values


def _language(files: str | tuple[str, ...]) -> str | None:
    """Returns the extension of the first file, not counting .gz or .zst."""
    first = files if isinstance(files, str) else files[0]
    return Path(first.removesuffix(".gz").removesuffix(".zst")).suffix.lstrip(".") or None


def _best_validation(directory: Path) -> dict[str, Any] | None:
    progress = _read(directory, "progress.json")
    best = progress and Progress.from_json(progress).best
    return best and {"update": best.update, "bleu": best.bleu, "loss": best.valid_loss}


def _read(directory: Path, name: str) -> dict[str, Any] | None:
    return read_options(directory / name, directory) if (directory / name).exists() else None
