"""Combines several models into one."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..model.contract import Decodable, DecodeStep, Memory, NextWords, State


class Ensemble:
    """Adds the log-probabilities of models, as Nematus does; the sums are no distribution.

    A `Decodable`.
    """

    first_word = -1  # each model has its own

    def __init__(self, models: Sequence[Decodable]):
        self._models = list(models)
        self.variables = [variable for model in models for variable in model.variables]

    def word_costs(self, *batch: tf.Tensor) -> tf.Tensor:
        return tf.add_n([model.word_costs(*batch) for model in self._models])

    def encode(self, source: tf.Tensor, source_mask: tf.Tensor) -> tuple[State, Memory]:
        return tuple(
            zip(*(model.encode(source, source_mask) for model in self._models), strict=True)
        )

    def step_weights(self) -> list[Any]:
        return [model.step_weights() for model in self._models]

    def make_step(self, weights: Sequence[Any] | None = None) -> DecodeStep:
        """Returns the function of a step: the sums of what the models return for the next words."""
        each = zip(self._models, weights or self.step_weights(), strict=True)
        steps = [(model.make_step(own), model.first_word) for model, own in each]

        def step(words: tf.Tensor, state: State, memory: Memory) -> tuple[NextWords, State, Memory]:
            found = [
                step(tf.where(words == self.first_word, first_word, words), *inputs)
                for (step, first_word), *inputs in zip(steps, state, memory, strict=True)
            ]
            next_words, states, memories = zip(*found, strict=True)
            return NextWords(*map(tf.add_n, zip(*next_words, strict=True))), states, memories

        return step
