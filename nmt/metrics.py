"""Measures of translation quality over a test set.

`python -m nmt.metrics TRANSLATIONS REFERENCES` prints them for two text files.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import sacrebleu


class Bleu(NamedTuple):
    """Corpus BLEU, cased and detokenised, with the signature to report it with."""

    score: float  # 0 to 100
    signature: str


def bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """Returns sacreBLEU of detokenised text against one reference each.

    Reference: Post (2018), arXiv:1804.08771.
    """
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(list(translations), [list(references)]).score
    return Bleu(score, str(metric.get_signature()))


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """Returns the percentage of translations that equal their reference."""
    pairs = list(zip(translations, references, strict=True))
    return 100.0 * sum(translation == reference for translation, reference in pairs) / len(pairs)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except (OSError, UnicodeError) as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read: {error}") from None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m nmt.metrics", description="Compares translations with references.")
    parser.add_argument("translations", type=_lines, help="text file, one sentence a line")
    parser.add_argument("references", type=_lines, help="text file, as many lines")
    translations, references = vars(parser.parse_args()).values()
    if len(translations) != len(references):
        parser.error(f"there are {len(translations)} translations and {len(references)} references")
    found = bleu(translations, references)
    print(f"BLEU {found.score:.2f} ({found.signature})")
    print(f"exact match {exact_match(translations, references):.1f}%")


if __name__ == "__main__":
    main()
