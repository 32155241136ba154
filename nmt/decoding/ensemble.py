"""Several models as one."""

from collections.abc import Sequence

import tensorflow as tf

from ..model.contract import Decodable, Memory, State


class Ensemble:
    """A model whose log-probabilities are the sums of those of others, as in Nematus. A `Decodable`.

    The sums are no distribution: they rank translations and cannot be drawn from. `sampling_step` has one.

    Args:
        models: The models. They have the same vocabularies.
    """

    first_word = -1  # each model has its own

    def __init__(self, models: Sequence[Decodable]):
        self._models = list(models)
        self.variables = [variable for model in models for variable in model.variables]

    def costs(self, source: tf.Tensor, source_mask: tf.Tensor, target: tf.Tensor, target_mask: tf.Tensor) -> tf.Tensor:
        """Returns the summed cost of each target sentence, `[batch]`."""
        return tf.add_n([model.costs(source, source_mask, target, target_mask) for model in self._models])

    def encode(self, source: tf.Tensor, source_mask: tf.Tensor) -> tuple[State, Memory]:
        """Returns the states and the memories of all models."""
        return tuple(zip(*(model.encode(source, source_mask) for model in self._models), strict=True))

    def decode_step(self, words: tf.Tensor, state: State, memory: Memory) -> tuple[tf.Tensor, State]:
        """Returns the summed log-probabilities of the next word, `[rows, target_words]`, and the next states."""
        found = [
            model.decode_step(tf.where(words == self.first_word, model.first_word, words), *inputs)
            for model, *inputs in zip(self._models, state, memory, strict=True)
        ]
        log_probabilities, states = zip(*found, strict=True)
        return tf.add_n(log_probabilities), states

    def sampling_step(self, words: tf.Tensor, state: State, memory: Memory) -> tuple[tf.Tensor, State]:
        """Returns what `decode_step` does for the normalized geometric mean of the models' distributions.

        So an ensemble of equal models is one of them, and the likeliest word is that of the sums.
        """
        log_probabilities, state = self.decode_step(words, state, memory)
        return tf.nn.log_softmax(log_probabilities / len(self._models)), state
