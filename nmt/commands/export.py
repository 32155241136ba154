"""`python -m nmt export`."""

import argparse
import importlib.util

from ..decoding.options import SEARCH
from ..errors import UserError
from ..serving.ctranslate2_model import save_ctranslate2
from ..serving.saved_model import save_signatures
from ..serving.signatures import IdSignatures, Signatures
from ..system import load_ensemble
from .arguments import add_model, add_path, say
from .model_card import describe
from .options import add_decoding, decoding_options

_WARMUP = (3, 8, 20)  # tokens in the sentences of the warm-up requests


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser, several=True)
    where = "where the model goes; MODELS/NAME/VERSION for `serve` and TensorFlow Serving"
    add_path(parser, "--to", metavar="DIR", required=True, help=where)
    parser.add_argument(
        "--format",
        choices=("savedmodel", "savedmodel_ids", "ctranslate2"),
        default="savedmodel",
        help="what to write: a SavedModel that maps strings to strings, a SavedModel that maps token ids to token ids "
        "and needs no tensorflow-text, or a model of CTranslate2 that maps tokens to tokens and gets its search "
        "options with each call (default: savedmodel)",
    )
    languages = "for the model card (default: the endings of the training texts)"
    parser.add_argument("--languages", nargs=2, metavar=("SOURCE", "TARGET"), help=languages)
    add_decoding(parser, *SEARCH)


def run(arguments: argparse.Namespace) -> None:
    """Exports a model."""
    if arguments.format == "ctranslate2":
        _export_ctranslate2(arguments)
        return
    options = decoding_options(arguments)
    system = load_ensemble(arguments.model)
    translator = system.translator(options)
    if arguments.format == "savedmodel_ids":
        signatures = IdSignatures(system.source_vocabulary.size, system.model, translator)
    else:
        signatures = Signatures(*system.vocabularies, system.model, translator)
    card = describe(system, arguments, options) | {"limits": signatures.limits}
    if not save_signatures(signatures, arguments.to, card, signatures.sentences(_WARMUP)):
        say("note: the export has no warm-up requests; run `pip install -e '.[serving]'` and export again")
    say(f"{arguments.to} holds the SavedModel")


def _export_ctranslate2(arguments: argparse.Namespace) -> None:
    if given := [f"--{name}" for name in (*SEARCH, "languages") if vars(arguments).get(name) is not None]:
        raise UserError(f"--format ctranslate2 takes no {', '.join(given)}; CTranslate2 gets its options at each call")
    if importlib.util.find_spec("ctranslate2") is None:
        raise UserError("--format ctranslate2 needs `pip install -e '.[ctranslate2]'`")
    system = load_ensemble(arguments.model)
    save_ctranslate2(system.model, system.vocabularies, arguments.to)
    say(f"{arguments.to} holds the model for CTranslate2")
