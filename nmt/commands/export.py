"""`python -m nmt export`."""

import argparse
from pathlib import Path

from ..serving.saved_model import save_translator
from ..system import load_ensemble
from .arguments import add_models, add_search, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_models(parser)
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="where the SavedModel goes (required)")
    add_search(parser)


def run(arguments: argparse.Namespace) -> None:
    """Exports a model as a SavedModel that maps strings to strings."""
    translator = load_ensemble(arguments.model).translator(arguments.beam_size, arguments.normalization_alpha)
    save_translator(translator, arguments.to)
    say(f"{arguments.to} holds the SavedModel")
