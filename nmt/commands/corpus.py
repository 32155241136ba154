"""`python -m nmt corpus`."""

import argparse
from pathlib import Path

from ..text.corpora import CORPORA


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=CORPORA, help="name of the corpus (required)")
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="where its files go (required)")


def run(arguments: argparse.Namespace) -> None:
    """Writes a parallel corpus: texts for training, validation and test."""
    CORPORA[arguments.name](arguments.to)
