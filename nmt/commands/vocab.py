"""`python -m nmt vocab`."""

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path

from ..errors import UserError
from ..storage.files import atomic_write
from ..text.vocabulary import NORMALIZATION_RULES, load_vocabulary, train_sentencepiece
from .arguments import at_most, positive_int, say

_OPTIONS = ("kind", "sample_lines", "character_coverage", "byte_fallback", "user_symbols", "normalization_rule")
_OPTIONS += ("split_digits",)  # of `train_sentencepiece`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        type=Path,
        required=True,
        metavar="DIR",
        help="where source.model and target.model (or .json) go (required)",
    )
    parser.add_argument(
        "--dictionaries", type=Path, nargs=2, metavar="FILE", help="copy a pair of Nematus .json dictionaries instead"
    )
    group = parser.add_argument_group("training")
    for side in ("source", "target"):
        group.add_argument(
            f"--{side}_dataset",
            nargs="+",
            metavar="FILE",
            help=f"training text, {side} side: files or patterns, also .gz, .zst (required without --dictionaries)",
        )
    group.add_argument(
        "--size", type=at_most(10_000_000), default=8000, help="subword units on each side (above 0; default: 8000)"
    )
    group.add_argument(
        "--kind", choices=("bpe", "unigram"), default="bpe", help="byte-pair encoding or unigram model (default: bpe)"
    )
    group.add_argument(
        "--sample_lines",
        type=positive_int,
        metavar="N",
        help="train on N lines of each side, evenly spread (above 0; default: all)",
    )
    group.add_argument(
        "--character_coverage",
        type=_coverage,
        default=1.0,
        metavar="SHARE",
        help="share of the characters of the text that get a unit (0.98 to 1; default: 1); 0.9995 suits Chinese",
    )
    group.add_argument("--byte_fallback", action="store_true", help="add 256 units for bytes: no character is unknown")
    group.add_argument(
        "--user_symbols", nargs="+", default=(), metavar="SYMBOL", help="units that are never split, such as <2de>"
    )
    group.add_argument(
        "--normalization_rule",
        choices=NORMALIZATION_RULES,
        default=NORMALIZATION_RULES[0],
        help="Unicode normalization of the text; _cf folds case (default: nmt_nfkc)",
    )
    group.add_argument("--split_digits", action="store_true", help="make each digit a unit")
    group.add_argument("--joint", action="store_true", help="train one vocabulary on both texts, for both sides")


def run(arguments: argparse.Namespace) -> None:
    """Trains a SentencePiece vocabulary for each side or for both, or copies a pair of Nematus dictionaries."""
    given = arguments.dictionaries or (arguments.source_dataset, arguments.target_dataset)
    if arguments.dictionaries and (arguments.source_dataset or arguments.target_dataset):
        raise UserError("--dictionaries copies a pair and needs no text; leave out the options of the texts")
    if None in given:
        raise UserError("give --source_dataset and --target_dataset, or --dictionaries")
    if arguments.dictionaries and arguments.joint:
        raise UserError("--joint trains a vocabulary and --dictionaries copies two; leave one of them out")
    if arguments.dictionaries:
        for path in given:
            load_vocabulary(path)  # checks the file
    arguments.to.mkdir(parents=True, exist_ok=True)
    source, target = (arguments.to / f"{side}.model" for side in ("source", "target"))
    if arguments.dictionaries:
        for side, path in zip((source, target), given, strict=True):
            _copy(path, side.with_suffix(path.suffix))
    elif arguments.joint:
        _train(given, source, arguments)
        _copy(source, target)
    else:
        for side, path in zip((source, target), given, strict=True):
            _train([path], side, arguments)


def _train(texts: Sequence[Sequence[str]], to: Path, arguments: argparse.Namespace) -> None:
    train_sentencepiece(texts, to, arguments.size, **{name: getattr(arguments, name) for name in _OPTIONS})
    say(f"{to}: {load_vocabulary(to).size} units of {' and '.join(name for text in texts for name in text)}")


def _coverage(text: str) -> float:
    """Parses a share of characters, which SentencePiece takes from 0.98 on."""
    with contextlib.suppress(ValueError):
        if 0.98 <= float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text[:50]!r} is not a number from 0.98 to 1")


def _copy(path: Path, to: Path) -> None:
    with atomic_write(to, "wb") as file:
        file.write(path.read_bytes())
    say(f"{to}: a copy of {path}, {load_vocabulary(to).size} units")
