"""Quality of translations: BLEU, chrF, TER and exact matches."""

import os
import unicodedata
from collections.abc import Sequence

import sacrebleu
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from ..errors import UserError
from ..text.lines import stream_lines
from ..text.shards import all_shards

# Scripts without spaces that a tokenizer does not split, as the first words of Unicode's character names.
_KANA_AND_OTHERS = ("HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_UNSPLIT = {**dict.fromkeys(("13a", "intl", "none"), ("CJK", *_KANA_AND_OTHERS)), "zh": _KANA_AND_OTHERS}


class Evaluation:
    """BLEU, chrF and TER of detokenized text, with one or more references for each line, as sacreBLEU computes them.

    Args:
        references: One or more lists of references; each has one line for each translation.
        tokenizer: Name of sacreBLEU's tokenizer, which splits text into words for BLEU.

    Raises:
        UserError: The tokenizer cannot be used.
    """

    def __init__(self, references: Sequence[Sequence[str]], tokenizer: str = "13a"):
        self._references = references
        self._metrics = {"BLEU": _bleu(tokenizer, "--tokenizer"), "chrF": sacrebleu.CHRF(), "TER": sacrebleu.TER()}

    def scores(self, translations: Sequence[str]) -> dict[str, tuple[float, str]]:
        """Returns the score of each metric with its signature.

        Raises:
            UserError: The numbers of lines differ, or are 0.
        """
        _require_equal_lengths(translations, *self._references)
        found = {}
        for name, metric in self._metrics.items():
            score = metric.corpus_score(list(translations), self._references).score
            found[name] = score, str(metric.get_signature())
        return found

    def p_values(self, first: Sequence[str], second: Sequence[str]) -> dict[str, float]:
        """Returns the p-value of the difference of two systems by metric: the paired bootstrap, 1,000 resamples.

        Raises:
            UserError: The numbers of lines differ, or are 0.

        Reference: Koehn (2004), "Statistical significance tests for machine translation evaluation".
        """
        _require_equal_lengths(first, second, *self._references)
        systems = [("first", list(first)), ("second", list(second))]
        _, scores = PairedTest(systems, self._metrics, self._references, test_type="bs", n_samples=1000)()
        _, *columns = scores.values()  # the first holds the names of the systems
        return {  # where the scores are equal, sacreBLEU itself may give 0.001
            name: 1.0 if one.score == other.score else other.p_value
            for name, (one, other) in zip(self._metrics, columns, strict=True)
        }


def _bleu(tokenizer: str, option: str, **settings: str) -> Metric:
    try:
        return sacrebleu.BLEU(tokenize=tokenizer, **settings)
    except Exception as error:  # sacreBLEU raises RuntimeError, ImportError and the errors of a download
        raise UserError(
            f"{option} {tokenizer} cannot be used: {' '.join(str(error).split())}; char needs nothing else"
        ) from None


def _require_equal_lengths(*texts: Sequence[str]) -> None:
    lengths = [len(text) for text in texts]
    if not any(lengths):
        raise UserError("the texts are empty; give texts with a sentence on each line")
    if len(set(lengths)) != 1:
        raise UserError(f"the texts have {', '.join(map(str, lengths))} lines; give texts of the same number of lines")


def validation_metrics(tokenizer: str) -> tuple[Metric, Metric]:
    """Returns the metrics of a validation, BLEU with this tokenizer of sacreBLEU and chrF, both from 0 to 100.

    Raises:
        UserError: The tokenizer needs a package that is not installed, or a file that cannot be downloaded.
    """
    # Without smoothing, because smoothed BLEU is above 0 even if no four words in a row are right.
    return _bleu(tokenizer, "--valid_tokenizer", smooth_method="none"), sacrebleu.CHRF()


def exact_match(translations: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Returns the percentage of translations that equal one of their references."""
    found = [line in same for line, *same in zip(translations, *references, strict=True)]
    return 100.0 * sum(found) / len(found)


def read_lines(path: str | os.PathLike) -> list[str]:
    """Returns the lines of a text. As in training and translation, only a line feed ends a line.

    Raises:
        UserError: The file is missing or not UTF-8.
    """
    return [line.decode() for line in stream_lines(all_shards(path))]


def cannot_split(tokenizer: str, references: Sequence[str]) -> bool:
    """Returns whether this tokenizer leaves whole sentences as one word, as in Japanese or Thai."""
    scripts = _UNSPLIT.get(tokenizer)
    if not scripts:
        return False
    letters = [letter for line in references[:1000] for letter in line if letter.isalpha()]
    without = sum(unicodedata.name(letter, "").startswith(scripts) for letter in letters)
    spaces = sum(line.count(" ") for line in references[:1000])
    return without > 0.3 * len(letters) and spaces < 0.2 * len(letters)
