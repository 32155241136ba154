"""`python -m nmt vocab`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..config_fields import MOST, between, positive
from ..errors import UserError
from ..storage.files import atomic_write
from ..text.vocabulary import NORMALIZATION_RULES, load_vocabulary, train_sentencepiece
from .arguments import add_number, add_path, say

_OPTIONS = ("kind", "sample_lines", "character_coverage", "byte_fallback", "user_symbols", "normalization_rule")
_OPTIONS += ("split_digits", "begin_symbol")  # of `train_sentencepiece`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser, "--to", metavar="DIR", required=True, help="where source.model and target.model (or .json) go")
    add_path(parser, "--dictionaries", nargs=2, help="copy a pair of Nematus .json dictionaries instead")
    group = parser.add_argument_group("training")
    for side in ("source", "target"):
        text = f"training text, {side} side: files or patterns, also .gz, .zst (required without --dictionaries)"
        group.add_argument(f"--{side}_dataset", nargs="+", metavar="FILE", help=text)
    add_number(group, "size", int, positive(8000, "subword units on each side", 10_000_000))
    group.add_argument(
        "--kind", choices=("bpe", "unigram"), default="bpe", help="byte-pair encoding or unigram model (default: bpe)"
    )
    lines = positive(None, "train on N lines of each side, evenly spread; by default, on all", MOST)
    add_number(group, "sample_lines", int, lines)
    coverage = "share of the characters of the text that get a unit; 0.9995 suits Chinese"
    add_number(group, "character_coverage", float, between(1.0, coverage, 0.98, 1))
    group.add_argument("--byte_fallback", action="store_true", help="add 256 units for bytes: no character is unknown")
    group.add_argument(
        "--user_symbols", nargs="+", default=(), metavar="SYMBOL", help="units that are never split, such as <2de>"
    )
    rule = "Unicode normalization of the text; _cf folds case (default: nmt_nfkc)"
    group.add_argument("--normalization_rule", choices=NORMALIZATION_RULES, default="nmt_nfkc", help=rule)
    begin = "give the beginning of a sentence an id of its own; else a Transformer begins with the unknown word"
    group.add_argument("--begin_symbol", action="store_true", help=begin)
    group.add_argument("--split_digits", action="store_true", help="make each digit a unit")
    group.add_argument("--joint", action="store_true", help="train one vocabulary on both texts, for both sides")


def run(arguments: argparse.Namespace) -> None:
    """Trains a SentencePiece vocabulary for each side or for both, or copies a pair of Nematus dictionaries."""
    given = arguments.dictionaries or (arguments.source_dataset, arguments.target_dataset)
    if None in given:
        raise UserError("give --source_dataset and --target_dataset, or --dictionaries")
    if arguments.dictionaries:
        _require_no_options_of_training(arguments)
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


def _require_no_options_of_training(arguments: argparse.Namespace) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    names = ("source_dataset", "target_dataset", "size", "joint", *_OPTIONS)
    if given := [f"--{name}" for name in names if getattr(arguments, name) != parser.get_default(name)]:
        raise UserError(f"--dictionaries copies a pair and trains nothing; leave out {', '.join(given)}")


def _train(texts: Sequence[Sequence[str]], to: Path, arguments: argparse.Namespace) -> None:
    train_sentencepiece(texts, to, arguments.size, **{name: getattr(arguments, name) for name in _OPTIONS})
    say(f"{to}: {load_vocabulary(to).size} units of {' and '.join(name for text in texts for name in text)}")


def _copy(path: Path, to: Path) -> None:
    with atomic_write(to, "wb") as file:
        file.write(path.read_bytes())
    say(f"{to}: a copy of {path}, {load_vocabulary(to).size} units")
