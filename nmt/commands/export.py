"""`python -m nmt export`."""

import argparse
import importlib.util
from pathlib import Path

from ..errors import UserError
from ..serving.ctranslate2_model import save_ctranslate2
from ..serving.saved_model import save_signatures
from ..serving.signatures import Joining, Signatures
from ..system import load_ensemble
from .arguments import ALPHA, BEAM_SIZE, add_models, add_search, non_negative_float, positive_int, say
from .model_card import describe

_JOINED = 64  # sentences, for --batch without MAX
_WARMUP = (3, 8, 20)  # tokens in the sentences of the warm-up requests


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_models(parser)
    parser.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="DIR",
        help="where the model goes; MODELS/NAME/VERSION for `serve` and TensorFlow Serving (required)",
    )
    parser.add_argument(
        "--format",
        choices=("savedmodel", "ctranslate2"),
        default="savedmodel",
        help="what to write: a SavedModel that maps strings to strings, or a model of CTranslate2 that maps tokens to "
        "tokens and gets its search options with each call (default: savedmodel)",
    )
    parser.add_argument(
        "--languages",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="for the model card (default: the endings of the training texts)",
    )
    add_search(parser.add_argument_group("search"))
    parser.set_defaults(beam_size=None, normalization_alpha=None)  # so that `run` sees whether they are given
    group = parser.add_argument_group("requests of several callers")
    group.add_argument(
        "--batch",
        type=positive_int,
        nargs="?",
        const=_JOINED,
        metavar="MAX",
        help="join the requests of several callers in the graph, up to this many sentences "
        f"(above 0; default: off; --batch without MAX: {_JOINED})",
    )
    group.add_argument(
        "--batch_timeout_ms",
        type=non_negative_float,
        metavar="T",
        help="longest time a request waits for others, with --batch (at least 0; default: 2)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Exports a model."""
    if arguments.format == "ctranslate2":
        _export_ctranslate2(arguments)
        return
    if arguments.batch_timeout_ms is not None and not arguments.batch:
        raise UserError("--batch_timeout_ms has no effect without --batch; give both")
    arguments.beam_size = arguments.beam_size or BEAM_SIZE
    arguments.normalization_alpha = ALPHA if arguments.normalization_alpha is None else arguments.normalization_alpha
    system = load_ensemble(arguments.model)
    timeout = 2.0 if arguments.batch_timeout_ms is None else arguments.batch_timeout_ms
    signatures = Signatures(
        system.source_vocabulary,
        system.target_vocabulary,
        system.model,
        system.translator(arguments.beam_size, arguments.normalization_alpha),
        beam_size=arguments.beam_size,
        alpha=arguments.normalization_alpha,
        joining=Joining(arguments.batch, timeout) if arguments.batch else None,
    )
    card = describe(system, arguments) | {"limits": signatures.limits}
    if not save_signatures(signatures, arguments.to, card, signatures.sentences(_WARMUP)):
        say("note: the export has no warm-up requests; run `pip install -e '.[serving]'` and export again")
    say(f"{arguments.to} holds the SavedModel")


def _export_ctranslate2(arguments: argparse.Namespace) -> None:
    names = ("beam_size", "normalization_alpha", "batch", "batch_timeout_ms", "languages")
    if given := [f"--{name}" for name in names if getattr(arguments, name) is not None]:
        raise UserError(f"--format ctranslate2 takes no {', '.join(given)}; CTranslate2 gets its options at each call")
    if importlib.util.find_spec("ctranslate2") is None:
        raise UserError("--format ctranslate2 needs `pip install -e '.[ctranslate2]'`")
    system = load_ensemble(arguments.model)
    vocabularies = (system.source_vocabulary, system.target_vocabulary)
    save_ctranslate2(system.model, vocabularies, system.config.translation_maxlen, arguments.to)
    say(f"{arguments.to} holds the model for CTranslate2")
