"""Measures of translation quality over a test set.

`python -m nmt.metrics TRANSLATIONS REFERENCES` prints them for two text files.
"""

import sys
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


def main() -> None:
    translations, references = (Path(path).read_text(encoding="utf-8").splitlines() for path in sys.argv[1:])
    found = bleu(translations, references)
    print(f"BLEU {found.score:.2f} ({found.signature})")
    print(f"exact match {exact_match(translations, references):.1f}%")


if __name__ == "__main__":
    main()
