"""`python -m nmt corpus`."""

import argparse

from ..text.corpora import CORPORA


def run(arguments: argparse.Namespace) -> None:
    CORPORA[arguments.name](arguments.to)
