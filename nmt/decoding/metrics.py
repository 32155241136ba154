"""Measures of translation quality over a test set.

`python -m nmt.decoding.metrics TRANSLATIONS REFERENCES` prints them for two text files.
"""

import argparse
import os
from collections.abc import Sequence
from typing import NamedTuple

import sacrebleu

from ..errors import UserError
from ..text.lines import TextFile, require_utf8


class Bleu(NamedTuple):
    """Corpus BLEU, cased and detokenised, with the signature to report it with."""

    score: float  # 0 to 100
    signature: str


def bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """Returns sacreBLEU of detokenised text against one reference each.

    Raises:
        UserError: There are more of the ones than of the others, of which sacreBLEU would say nothing, or none at all.

    Reference: Post (2018), arXiv:1804.08771.
    """
    if not len(translations) == len(references) > 0:
        raise UserError(
            f"there are {len(translations)} translations and {len(references)} references; give one reference for each"
        )
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(list(translations), [list(references)]).score
    return Bleu(score, str(metric.get_signature()))


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """Returns the percentage of translations that equal their reference."""
    pairs = list(zip(translations, references, strict=True))
    return 100.0 * sum(translation == reference for translation, reference in pairs) / len(pairs)


def read_lines(path: str | os.PathLike) -> list[str]:
    """Returns the lines of a text, as training and translation know them: only a line feed ends one.

    Raises:
        UserError: There is no such file, or it is not UTF-8.
    """
    text = TextFile(path)
    require_utf8(path)
    return [line.decode() for line in text]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m nmt.decoding.metrics", description="Compares translations with references."
    )
    parser.add_argument("translations", help="text file, one sentence a line")
    parser.add_argument("references", help="text file, as many lines")
    try:
        translations, references = map(read_lines, vars(parser.parse_args()).values())
        found = bleu(translations, references)
    except UserError as error:
        parser.error(str(error))
    print(f"BLEU {found.score:.2f} ({found.signature})")
    print(f"exact match {exact_match(translations, references):.1f}%")


if __name__ == "__main__":
    main()
