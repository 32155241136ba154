"""Measures of translation quality over a test set."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import sacrebleu

from ..errors import UserError
from ..text.lines import TextFile, require_utf8


class Bleu(NamedTuple):
    """Corpus BLEU, cased and detokenized, with the signature to report it with."""

    score: float  # 0 to 100
    signature: str


def bleu(translations: Sequence[str], references: Sequence[str]) -> Bleu:
    """Returns sacreBLEU of detokenized text against one reference each.

    Raises:
        UserError: The numbers of translations and references differ, which sacreBLEU ignores, or are 0.

    Reference: Post (2018), arXiv:1804.08771.
    """
    if not len(translations) == len(references) > 0:
        raise UserError(
            f"there are {len(translations)} translations and {len(references)} references; give one reference for each"
        )
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(list(translations), [list(references)]).score
    return Bleu(score, str(metric.get_signature()))


class ValidationMetrics:
    """BLEU and chrF of a validation, both from 0 to 100.

    Args:
        tokenizer: How BLEU splits text into words; a name of sacreBLEU's.

    Raises:
        UserError: The tokenizer needs a package that is not installed, or a file that cannot be downloaded.
    """

    def __init__(self, tokenizer: str):
        try:
            # Without smoothing, as smoothed BLEU is above 0 when no four words in a row are right.
            self._bleu = sacrebleu.BLEU(tokenize=tokenizer, smooth_method="none")
        except Exception as error:  # sacreBLEU raises RuntimeError, ImportError and those of the download
            raise UserError(
                f"--valid_tokenizer {tokenizer} cannot be used: {' '.join(str(error).split())}; char needs nothing else"
            ) from None

    def scores(self, translations: Sequence[str], references: Sequence[str]) -> tuple[float, float]:
        """Returns BLEU and chrF against one reference each."""
        references = [list(references)]
        return tuple(each.corpus_score(list(translations), references).score for each in (self._bleu, sacrebleu.CHRF()))


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """Returns the percentage of translations that equal their reference."""
    pairs = list(zip(translations, references, strict=True))
    return 100.0 * sum(translation == reference for translation, reference in pairs) / len(pairs)


def read_lines(path: str | os.PathLike) -> list[str]:
    """Returns the lines of a text as training and translation read them: only a line feed ends one.

    Raises:
        UserError: The file is missing or not UTF-8.
    """
    text = TextFile(path)
    require_utf8(path)
    return [line.decode() for line in text]
