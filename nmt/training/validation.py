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


# Scores as fields of `Validation`, translations, and notes to print.
Measured = tuple[dict[str, Any], Sequence[str], Sequence[str]]


def measure(
    costs: Callable[..., np.ndarray],
    data: ValidationData,
    translate: Callable[..., list[tuple[str, bool]]],
    config: Config,
) -> Measured:
    """Measures a model on the validation set.

    Args:
        costs: Maps the ids of sources and targets to the cost of each pair.
        data: The validation set.
        translate: Maps lines to their translations, each with whether the limit of its length
            ended it.
        config: The configuration of the training.
    """
    tokens = sum(len(target) + 1 for target in data.ids[1])
    loss = float(costs(*data.ids).sum()) / tokens
    if not math.isfinite(loss):
        return {"valid_loss": loss, "bleu": 0.0, "chrf": 0.0}, [], []
    found = translate(data.sources)
    translations = [text for text, _ in found]
    if data.prefixes:  # references have none
        pairs = zip(translations, data.decoded_prefixes, strict=True)
        translations = [text.removeprefix(prefix).lstrip() for text, prefix in pairs]
    notes = []
    cut = sum(is_cut for _, is_cut in found)
    if cut:
        notes.append(
            f"  {cut} of {len(found)} translations reached the limit of length and were cut"
        )
    divergence = describe_divergence(loss, data.target_words)
    if divergence:
        notes.append(f"warning: {divergence}")
    metrics = validation_metrics(config.valid_tokenizer)

    def scores(lines: slice) -> dict[str, float]:
        each = [
            metric.corpus_score(translations[lines], [data.references[lines]]).score
            for metric in metrics
        ]
        return dict(zip(("bleu", "chrf"), each, strict=True))

    sets = {
        name: scores(lines)
        for name, lines in data.sets
        if data.references[lines] and len(data.sets) > 1
    }
    return {"valid_loss": loss, "sets": sets, **scores(slice(None))}, translations, notes


def describe_divergence(loss: float, words: int) -> str:
    """Returns a message if the loss is far above that of guessing one of the words, else ""."""
    if loss <= 2 * math.log(words):
        return ""
    return (
        f"the training diverges: the validation loss is {loss:.4g}, and guessing alone would "
        f"give {math.log(words):.1f}; train again with a lower --learning_rate or more "
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
