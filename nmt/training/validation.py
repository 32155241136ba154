"""Measures a model on the validation set: loss, and BLEU and chrF as sacreBLEU computes them."""

import math
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sacrebleu
from sacrebleu.metrics.base import Metric

from ..config import Config
from ..errors import UserError
from ..text.datasets import ValidationData

SCORES = ("valid_loss", "bleu", "chrf")  # fields of `Validation`
# Scripts without spaces that a tokenizer does not split, as the first words of Unicode's character
# names.
_KANA_AND_OTHERS = ("HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
_UNSPLIT = {
    **dict.fromkeys(("13a", "intl", "none"), ("CJK", *_KANA_AND_OTHERS)),
    "zh": _KANA_AND_OTHERS,
}


class Validator:
    """Measures a model on the validation set.

    Args:
        costs: Maps the ids of sources and targets to the cost of each pair.
        data: The validation set.
        translate: Maps lines to their translations, each with whether the limit of its length
            ended it.
        config: The configuration of the training.
    """

    def __init__(
        self,
        costs: Callable[..., np.ndarray],
        data: ValidationData,
        translate: Callable[..., list[tuple[str, bool]]],
        config: Config,
    ):
        self._costs = costs
        self._data = data
        self._translate = translate
        self._metrics = validation_metrics(config.valid_tokenizer)
        self._guessing = math.log(data.target_words)

    def __call__(self) -> tuple[dict[str, Any], list[str], list[str]]:
        """Returns the scores, as fields of `Validation`, the translations, and notes to print."""
        tokens = sum(len(target) + 1 for target in self._data.ids[1])
        loss = float(self._costs(*self._data.ids).sum()) / tokens
        notes = []
        if not math.isfinite(loss):
            return {"valid_loss": loss, "bleu": 0.0, "chrf": 0.0}, [], notes
        found = self._translate(self._data.sources)
        translations = [text for text, _ in found]
        if self._data.prefixes:  # references have none
            pairs = zip(translations, self._data.decoded_prefixes, strict=True)
            translations = [text.removeprefix(prefix).lstrip() for text, prefix in pairs]
        scores = self._bleu_and_chrf(translations, self._data.references)
        cut = sum(is_cut for _, is_cut in found)
        if cut:
            notes.append(
                f"  {cut} of {len(found)} translations reached the limit of length and were cut"
            )
        divergence = self.divergence(loss)
        if divergence:
            notes.append(f"warning: {divergence}")
        scores |= {"valid_loss": loss, "sets": self._of_sets(translations)}
        return scores, translations, notes

    def _of_sets(self, translations: Sequence[str]) -> dict[str, dict[str, float]]:
        references = self._data.references
        return {
            name: self._bleu_and_chrf(translations[lines], references[lines])
            for name, lines in self._data.sets
            if references[lines] and len(self._data.sets) > 1
        }

    def _bleu_and_chrf(
        self, translations: Sequence[str], references: Sequence[str]
    ) -> dict[str, float]:
        scores = [
            metric.corpus_score(list(translations), [list(references)]).score
            for metric in self._metrics
        ]
        return dict(zip(("bleu", "chrf"), scores, strict=True))

    def divergence(self, loss: float) -> str:
        """Returns a message if the loss is far above that of guessing, else an empty string."""
        if loss <= 2 * self._guessing:
            return ""
        return (
            f"the training diverges: the validation loss is {loss:.4g}, and guessing alone would "
            f"give {self._guessing:.1f}; train again with a lower --learning_rate or more "
            "--warmup_steps"
        )


def validation_metrics(tokenizer: str) -> tuple[Metric, Metric]:
    """Returns BLEU with this tokenizer of sacreBLEU, and chrF, both from 0 to 100.

    BLEU is not smoothed: smoothed, it is above 0 even if no four words in a row are right.
    """
    try:
        return sacrebleu.BLEU(tokenize=tokenizer, smooth_method="none"), sacrebleu.CHRF()
    except Exception as error:  # RuntimeError, ImportError and the errors of a download
        reason = " ".join(str(error).split())
        raise UserError(
            f"--valid_tokenizer {tokenizer} cannot be used: {reason}; char needs nothing else"
        ) from None


def cannot_split(tokenizer: str, references: Sequence[str]) -> bool:
    """Returns whether this tokenizer leaves whole sentences as one word, as in Japanese or Thai."""
    scripts = _UNSPLIT.get(tokenizer)
    if not scripts:
        return False
    letters = [letter for line in references[:1000] for letter in line if letter.isalpha()]
    without = sum(unicodedata.name(letter, "").startswith(scripts) for letter in letters)
    spaces = sum(line.count(" ") for line in references[:1000])
    return without > 0.3 * len(letters) and spaces < 0.2 * len(letters)
