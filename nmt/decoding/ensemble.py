"""Several models as one."""

from collections.abc import Sequence

import tensorflow as tf

from ..model.contract import Decodable, DecodeStep, Memory, NextWords, State


class Ensemble:
    """A `Decodable` whose log-probabilities are the sums of those of others, as in Nematus: not a distribution."""

    first_word = -1  # each model has its own

    def __init__(self, models: Sequence[Decodable]):
        self._models = list(models)
        self.variables = [variable for model in models for variable in model.variables]

    def costs(
        self, source: tf.Tensor, source_mask: tf.Tensor, target: tf.Tensor, target_mask: tf.Tensor
    ) -> tf.Tensor:
        return tf.add_n(
            [model.costs(source, source_mask, target, target_mask) for model in self._models]
        )

    def encode(self, source: tf.Tensor, source_mask: tf.Tensor) -> tuple[State, Memory]:
        return tuple(
            zip(*(model.encode(source, source_mask) for model in self._models), strict=True)
        )

    def make_step(self) -> DecodeStep:
        """Returns the function of a step: the sums of what the models return for the next words."""
        steps = [(model.make_step(), model.first_word) for model in self._models]

        def step(words: tf.Tensor, state: State, memory: Memory) -> tuple[NextWords, State, Memory]:
            found = [
                step(tf.where(words == self.first_word, first_word, words), *inputs)
                for (step, first_word), *inputs in zip(steps, state, memory, strict=True)
            ]
            next_words, states, memories = zip(*found, strict=True)
            return NextWords(*map(tf.add_n, zip(*next_words, strict=True))), states, memories

        return step
