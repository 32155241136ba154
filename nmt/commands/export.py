"""`python -m nmt export`."""

import argparse
import importlib.metadata
import math
from pathlib import Path
from typing import Any

from ..config import Config, read_config
from ..decoding.options import CONSTRAINTS, LENGTH_CONSTANT, LENGTH_FACTOR, DecodingOptions
from ..errors import UserError
from ..messages import log
from ..serving.ctranslate2_model import save_ctranslate2
from ..serving.saved_model import save_signatures
from ..serving.signatures import IdSignatures, Signatures
from ..storage.files import ORIGIN, read_json
from ..system import System, load_ensemble
from ..training.progress import Progress

_WARMUP = (3, 8, 20)  # tokens in the sentences of the warm-up requests


def run(arguments: argparse.Namespace) -> None:
    is_ctranslate2 = arguments.format == "ctranslate2"
    if arguments.compute_type and not is_ctranslate2:
        raise UserError("--compute_type is that of --format ctranslate2; leave it out, or add this")
    options = DecodingOptions.among(vars(arguments))
    system = load_ensemble(arguments.model)
    vocabularies = system.vocabularies
    card = _describe(system, arguments, options)
    to = arguments.to
    if is_ctranslate2:
        if not save_ctranslate2(
            system.model,
            vocabularies,
            to,
            options,
            card,
            directory=arguments.model[0],
            compute_type=arguments.compute_type,
        ):
            log.info("note: `serve` cannot serve it; it needs vocabularies of SentencePiece")
        log.info(f"{to} holds the model for CTranslate2")
        return
    translator = system.translator(options)
    if arguments.format == "savedmodel_ids":
        signatures = IdSignatures(vocabularies.source.size, translator)
    else:
        signatures = Signatures(vocabularies, system.model, translator)
    card |= {"limits": signatures.limits}
    if not save_signatures(signatures, to, card, signatures.sentences(_WARMUP)):
        log.info(
            "note: the export has no warm-up requests; run `pip install -e '.[serving]'` "
            "and export again"
        )
    log.info(f"{to} holds the SavedModel")


def _describe(
    system: System, arguments: argparse.Namespace, options: DecodingOptions
) -> dict[str, Any]:
    """Makes the model card of an exported system; an unknown value is `None`."""
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
            "source_vocabulary": system.vocabularies.source.size,
            "target_vocabulary": system.vocabularies.target.size,
            "parameters": sum(math.prod(variable.shape) for variable in system.model.variables),
        },
        "search": {
            "beam_size": options.beam_size,
            "normalization_alpha": options.normalization_alpha,
            "longest_translation": options.translation_maxlen
            or {
                "times_source_tokens": LENGTH_FACTOR,
                "plus_tokens": max(LENGTH_CONSTANT, options.min_length),
            },
            **{name: getattr(options, name) for name in CONSTRAINTS},
        },
        "models": [
            {
                "validation": _best_validation(directory),
                "trained_with": _read(directory, "versions.json"),
                "origin": _read(directory, ORIGIN),
            }
            for directory in arguments.model
        ],
        "exported_with": {
            name: importlib.metadata.version(name) for name in ("tensorflow", "tensorflow-text")
        },
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
    best = Progress.from_json(_read(directory, "progress.json") or {}).best
    return best and {
        "update": best.update,
        "bleu": round(best.bleu, 2),
        "loss": round(best.valid_loss, 4),
    }


def _read(directory: Path, name: str) -> dict[str, Any] | None:
    return read_json(directory / name, directory) if (directory / name).exists() else None
