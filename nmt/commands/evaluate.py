"""`python -m nmt evaluate`."""

import argparse
from pathlib import Path

from ..decoding.metrics import bleu, exact_match, read_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("translations", type=Path, metavar="TRANSLATIONS", help="text, one sentence a line (required)")
    parser.add_argument("references", type=Path, metavar="REFERENCES", help="a reference for each line (required)")


def run(arguments: argparse.Namespace) -> None:
    """Compares translations with references: BLEU and exact matches."""
    translations, references = read_lines(arguments.translations), read_lines(arguments.references)
    found = bleu(translations, references)
    print(f"BLEU {found.score:.2f} ({found.signature})")
    print(f"exact match {exact_match(translations, references):.1f}%")
