"""Validation: the loss, BLEU and chrF of a model on the validation set."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import tensorflow as tf

from ..config import Config
from ..decoding.metrics import validation_metrics
from ..model.contract import TranslationModel
from ..text.datasets import ValidationData


class Scores(NamedTuple):
    """The scores of a model on the validation set."""

    loss: float  # nats per target token, ends included
    bleu: float  # 0 to 100
    chrf: float  # 0 to 100
    warning: str = ""
    translations: Sequence[str] = ()  # of the validation set; only the chief has them
    sets: Mapping[str, dict[str, float]] = MappingProxyType({})  # name -> bleu and chrf, if there are several sets
    cut: int = 0  # translations that the limit of their length ended


class Validator:
    """Measures a model on the validation set.

    Args:
        translate: Maps lines to their translations, each with whether the limit of its length ended it. It calls its
            second argument between batches.

    Raises:
        UserError: The tokenizer of the configuration cannot be used.
    """

    def __init__(
        self,
        model: TranslationModel,
        data: ValidationData,
        translate: Callable[..., list[tuple[str, bool]]],
        config: Config,
    ):
        self._data, self._translate = data, translate
        self._costs = tf.function(model.costs, autograph=False, reduce_retracing=True)
        self._metrics = validation_metrics(config.valid_tokenizer)
        self._guessing = math.log(data.target_words)

    def __call__(self, poll: Callable[[], None]) -> Scores:
        """Returns the current scores of the model; `poll`, called between batches, may raise.

        If the loss is not finite, nothing is translated.
        """
        loss, bleu, chrf, translations, cut = self._loss(poll), 0.0, 0.0, (), 0
        if math.isfinite(loss):
            found = self._translate(self._data.sources, poll)
            translations, cut = [text for text, _ in found], sum(is_cut for _, is_cut in found)
            if self._data.prefixes:  # references have none
                pairs = zip(translations, self._data.decoded_prefixes, strict=True)
                translations = [text.removeprefix(prefix).lstrip() for text, prefix in pairs]
            bleu, chrf = self._bleu_and_chrf(translations, self._data.references).values()
        return Scores(loss, bleu, chrf, self.divergence(loss), translations, self._of_sets(translations), cut)

    def _of_sets(self, translations: Sequence[str]) -> dict[str, dict[str, float]]:
        if len(self._data.sets) == 1 or not translations:
            return {}
        return {
            name: self._bleu_and_chrf(translations[lines], references)
            for name, lines in self._data.sets
            if (references := self._data.references[lines])
        }

    def _bleu_and_chrf(self, translations: Sequence[str], references: Sequence[str]) -> dict[str, float]:
        scores = [metric.corpus_score(list(translations), [list(references)]).score for metric in self._metrics]
        return dict(zip(("bleu", "chrf"), scores, strict=True))

    def divergence(self, loss: float) -> str:
        """Returns a message if the loss is far above that of guessing, and an empty string otherwise."""
        if loss <= 2 * self._guessing:
            return ""
        return (
            f"the training diverges: the validation loss is {loss:.4g}, and guessing alone would give "
            f"{self._guessing:.1f}; train again with a lower --learning_rate or more --warmup_steps"
        )

    def _loss(self, poll: Callable[[], None]) -> float:
        cost = words = 0.0
        for batch in self._data.batches:
            poll()
            cost += float(tf.reduce_sum(self._costs(*batch)))
            words += float(tf.reduce_sum(batch.target_mask))
        return cost / words
