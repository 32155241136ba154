"""`python -m nmt evaluate`."""

import argparse
from pathlib import Path

from ..decoding.metrics import evaluate, exact_match, p_values, read_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("translations", type=Path, metavar="TRANSLATIONS", help="text, one sentence a line (required)")
    parser.add_argument(
        "references",
        type=Path,
        nargs="+",
        metavar="REFERENCES",
        help="a reference for each line, one file or more (required)",
    )
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="translations of another system, to test the difference"
    )


def run(arguments: argparse.Namespace) -> None:
    """Compares translations with references: prints BLEU, chrF, TER and the share of exact matches."""
    translations = read_lines(arguments.translations)
    references = [read_lines(path) for path in arguments.references]
    scores = evaluate(translations, references)
    for name, (score, signature) in scores.items():
        print(f"{name} {score:.2f} ({signature})")
    print(f"exact match {exact_match(translations, references):.1f}%")
    if arguments.against:
        others = read_lines(arguments.against)
        theirs, p = evaluate(others, references), p_values(others, translations, references)
        for name, (score, _) in scores.items():
            print(
                f"{name} minus that of {arguments.against}: {score - theirs[name][0]:+.2f}, p = {p[name]:.4f} "
                "(paired bootstrap, 1000 resamples)"
            )
