"""`python -m nmt vocab`."""

import argparse
import itertools

from ..config_fields import MOST, between, positive
from ..storage.files import atomic_write
from ..text.vocabulary import NORMALIZATION_RULES, load_vocabulary, train_sentencepiece
from .arguments import add_number, add_path, say

_OPTIONS = ("kind", "sample_lines", "character_coverage", "byte_fallback", "user_symbols", "normalization_rule")
_OPTIONS += ("split_digits", "begin_symbol")  # of `train_sentencepiece`


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_path(parser, "--to", metavar="DIR", required=True, help="where source.model and target.model go")
    for side in ("source", "target"):
        text = f"training text, {side} side: files or patterns, also .gz, .zst (required)"
        parser.add_argument(f"--{side}_dataset", nargs="+", metavar="FILE", required=True, help=text)
    add_number(parser, "size", int, positive(8000, "subword units on each side", 10_000_000))
    parser.add_argument(
        "--kind", choices=("bpe", "unigram"), default="bpe", help="byte-pair encoding or unigram model (default: bpe)"
    )
    lines = positive(None, "train on N lines of each side, evenly spread; by default, on all", MOST)
    add_number(parser, "sample_lines", int, lines)
    coverage = "share of the characters of the text that get a unit; 0.9995 suits Chinese"
    add_number(parser, "character_coverage", float, between(1.0, coverage, 0.98, 1))
    parser.add_argument("--byte_fallback", action="store_true", help="add 256 units for bytes: no character is unknown")
    parser.add_argument(
        "--user_symbols", nargs="+", default=(), metavar="SYMBOL", help="units that are never split, such as <2de>"
    )
    rule = "Unicode normalization of the text; _cf folds case (default: nmt_nfkc)"
    parser.add_argument("--normalization_rule", choices=NORMALIZATION_RULES, default="nmt_nfkc", help=rule)
    begin = "give the beginning of a sentence an id of its own; else a Transformer begins with the unknown word"
    parser.add_argument("--begin_symbol", action="store_true", help=begin)
    parser.add_argument("--split_digits", action="store_true", help="make each digit a unit")
    parser.add_argument("--joint", action="store_true", help="train one vocabulary on both texts, for both sides")


def run(arguments: argparse.Namespace) -> None:
    """Trains a SentencePiece vocabulary for each side, or one for both."""
    source, target = arguments.source_dataset, arguments.target_dataset
    arguments.to.mkdir(parents=True, exist_ok=True)
    options = {name: getattr(arguments, name) for name in _OPTIONS}
    # Both are trained before one is written: a training that fails replaces neither.
    if arguments.joint:
        texts = [[source, target]] * 2
        models = [train_sentencepiece(texts[0], arguments.size, **options)] * 2
    else:
        texts = [[source], [target]]
        models = [train_sentencepiece(each, arguments.size, **options) for each in texts]
    for side, text, model in zip(("source", "target"), texts, models, strict=True):
        path = arguments.to / f"{side}.model"
        with atomic_write(path, "wb") as file:
            file.write(model)
        say(f"{path}: {load_vocabulary(path).size} units of {' and '.join(itertools.chain(*text))}")
