"""`python -m nmt corpus`."""

import argparse

from ..text.corpora import CORPORA
from .arguments import add_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=CORPORA, help="name of the corpus (required)")
    add_path(parser, "--to", metavar="DIR", required=True, help="where its files go")


def run(arguments: argparse.Namespace) -> None:
    """Writes a parallel corpus: texts for training, validation and test."""
    CORPORA[arguments.name](arguments.to)
