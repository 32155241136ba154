"""One update: the gradient of the mean cost of a batch, its norm clipped, and Adam's step."""

import contextlib
import functools
import math

import keras
import tensorflow as tf

from ..config import Config
from ..model.affine import Affine
from ..text.batches import Batch

_MOST_AT_ONCE = 2**31  # bytes that an update is expected to need


class Update:
    """Updates a model from a batch.

    Args:
        model: Offers `total_cost`, as `rnnsearch.RNNSearch` does.
        config: How to train.
    """

    def __init__(self, model: keras.Model, config: Config):
        _make_room()
        self._model, self._config = model, config
        self._optimizer = keras.optimizers.Adam(
            config.learning_rate,
            beta_1=config.adam_beta1,
            beta_2=config.adam_beta2,
            epsilon=config.adam_epsilon,
            name="adam",  # or Keras counts, and the names in a checkpoint with it
        )
        self._optimizer.build(model.trainable_variables)
        self._product = Affine("bfloat16" if config.dtype == "mixed_bfloat16" else "float32")
        # XLA is the faster in float32 only: it has no products in bfloat16.
        self._gradients = tf.function(self._differentiate, jit_compile=config.dtype == "float32", autograph=False)
        self._compiled = functools.cache(self._gradients.get_concrete_function)  # for each width of a batch
        self._apply = tf.function(self._optimizer.apply, jit_compile=True, autograph=False)

    @property
    def variables(self) -> list[keras.Variable]:
        """All that updates change: the model's variables and the optimizer's."""
        return [*self._model.variables, *self._optimizer.variables]

    def __call__(self, batch: Batch, number: int) -> tuple[float, float, float]:
        """Makes update `number`, unless the loss or its gradient is not finite; then nothing changes.

        Returns:
            The batch's summed loss in nats, its number of target tokens, and the norm of the gradient.
        """
        seed = tf.constant([self._config.seed, number])
        batch = Batch(*map(tf.convert_to_tensor, batch))
        gradients_of = self._compiled(Batch(*map(tf.TensorSpec.from_tensor, batch)), tf.TensorSpec.from_tensor(seed))
        loss, tokens, norm, gradients = gradients_of(batch, seed)
        if math.isfinite(loss) and math.isfinite(norm):
            self._apply(gradients)
        return float(loss), float(tokens), float(norm)

    def _differentiate(self, batch: Batch, seed: tf.Tensor) -> tuple:
        """Returns what a call returns, and the gradients with their norm clipped."""
        with tf.GradientTape() as tape:
            total = self._model.total_cost(
                *batch, label_smoothing=self._config.label_smoothing, dropout_seed=seed, product=self._product
            )
            loss = total / tf.reduce_sum(batch.target_mask[:, 0])
        gradients = tape.gradient(loss, self._model.trainable_variables)
        # Nematus's norm: in an embedding's gradient the rows of a word's occurrences are not yet summed.
        gradients, norm = tf.clip_by_global_norm(gradients, self._config.clip_c)
        return total, tf.reduce_sum(batch.target_mask), norm, [tf.convert_to_tensor(g) for g in gradients]


def _make_room() -> None:
    """Has TensorFlow's allocator take one large region of memory.

    It gives none back and joins none, so that a width of a batch which needs more than those before would take another.
    What is not used of a region takes no memory, but for 3% with which the allocator keeps its books.
    """
    with contextlib.suppress(tf.errors.ResourceExhaustedError), tf.device("CPU:0"):
        tf.raw_ops.Empty(shape=[_MOST_AT_ONCE // tf.float32.size], dtype=tf.float32)
