"""Quality of translations: BLEU and chrF, as sacreBLEU computes them."""

import os
import unicodedata
from collections.abc import Sequence

import sacrebleu
from sacrebleu.metrics.base import Metric

from ..errors import UserError
from ..text import lines
from ..text.shards import all_shards

# Scripts without spaces that a tokenizer does not split, as the first words of Unicode's character names.
_KANA_AND_OTHERS = ("HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_UNSPLIT = {**dict.fromkeys(("13a", "intl", "none"), ("CJK", *_KANA_AND_OTHERS)), "zh": _KANA_AND_OTHERS}


def validation_metrics(tokenizer: str) -> tuple[Metric, Metric]:
    """Returns the metrics of a validation, BLEU with this tokenizer of sacreBLEU and chrF, both from 0 to 100."""
    try:  # without smoothing, because smoothed BLEU is above 0 even if no four words in a row are right
        return sacrebleu.BLEU(tokenize=tokenizer, smooth_method="none"), sacrebleu.CHRF()
    except Exception as error:  # RuntimeError, ImportError and the errors of a download
        raise UserError(
            f"--valid_tokenizer {tokenizer} cannot be used: {' '.join(str(error).split())}; char needs nothing else"
        ) from None


def read_lines(path: str | os.PathLike) -> list[str]:
    """Returns the lines of a text. As in training and translation, only a line feed ends a line."""
    return [line.decode() for line in lines.read_lines(*all_shards(path))]


def cannot_split(tokenizer: str, references: Sequence[str]) -> bool:
    """Returns whether this tokenizer leaves whole sentences as one word, as in Japanese or Thai."""
    scripts = _UNSPLIT.get(tokenizer)
    if not scripts:
        return False
    letters = [letter for line in references[:1000] for letter in line if letter.isalpha()]
    without = sum(unicodedata.name(letter, "").startswith(scripts) for letter in letters)
    spaces = sum(line.count(" ") for line in references[:1000])
    return without > 0.3 * len(letters) and spaces < 0.2 * len(letters)
