"""`python -m nmt corpus`."""

import argparse

from ..text.corpora.demo import write_demo
from ..text.corpora.multi30k import write_multi30k


def run(arguments: argparse.Namespace) -> None:
    {"demo": write_demo, "multi30k": write_multi30k}[arguments.name](arguments.to)
