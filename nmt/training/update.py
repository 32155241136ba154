"""One update in parts: summed gradients of a batch, their mean, clipping, and the step of the optimizer."""

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from ..config import Config
from ..model.contract import TranslationModel
from ..text.batches import Batch
from .schedule import learning_rate

_RESERVED_BYTES = 2**31  # more than most updates need

_PRODUCTS = ("MatMul", "BatchMatMulV2", "Einsum")

Gradient = tf.Tensor | tf.IndexedSlices


class Sums(NamedTuple):
    """Sums over the sentences of a batch. Add them to combine several batches or replicas."""

    cost: tf.Tensor  # of the target words and ends, in nats
    words: tf.Tensor  # target words and ends
    sentences: tf.Tensor
    gradients: list[Gradient]  # of the cost, one for each variable


def sum_gradients(model: TranslationModel, batch: Batch, label_smoothing: float, dropout_seed: tf.Tensor) -> Sums:
    """Returns the summed cost of a batch and its gradients."""
    with tf.GradientTape() as tape:
        cost = model.total_cost(*batch, label_smoothing=label_smoothing, dropout_seed=dropout_seed)
    gradients = tape.gradient(cost, model.trainable_variables)
    return Sums(cost, tf.reduce_sum(batch.target_mask), tf.reduce_sum(batch.target_mask[:, 0]), gradients)


def clip_mean(sums: Sums, limit: float) -> tuple[list[Gradient], tf.Tensor]:
    """Returns the gradients of the mean cost of a sentence, scaled to a global norm of at most `limit`, and their norm.

    As in Nematus, the norm of a sparse gradient counts its rows before those of the same word are summed.
    """
    return tf.clip_by_global_norm([_divide(gradient, sums.sentences) for gradient in sums.gradients], limit)


class Update:
    """Updates a model from a batch.

    Args:
        model: The model.
        config: How to train.
    """

    def __init__(self, model: TranslationModel, config: Config):
        _reserve_memory()
        self._model, self._config = model, config
        self._rate, self._shapes = learning_rate(config), set()
        self._optimizer = keras.optimizers.Adam(
            self._rate,
            beta_1=config.adam_beta1,
            beta_2=config.adam_beta2,
            epsilon=config.adam_epsilon,
            name="adam",  # Keras's default names are numbered, and checkpoints store the name
        )
        self._optimizer.build(model.trainable_variables)
        gradients = _compiled(self._gradients, whole=config.dtype == "float32")
        self._compiled = functools.cache(gradients.get_concrete_function)  # one for each width of a batch
        self._step = tf.function(self._optimizer.apply, jit_compile=True, autograph=False)

    @property
    def variables(self) -> list[keras.Variable]:
        """Everything that updates change: the variables of the model and of the optimizer."""
        return [*self._model.variables, *self._optimizer.variables]

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last update that was not skipped."""
        return float(self._rate(max(int(self._optimizer.iterations.numpy()) - 1, 0)))

    def is_compiled(self, batch: Batch) -> bool:
        """Returns whether a batch of this shape was seen before. The first of each shape is slow."""
        return tuple(batch.source.shape) in self._shapes

    def __call__(self, batch: Batch, number: int) -> tuple[float, float, float]:
        """Makes one update. If the loss or its gradient is not finite, nothing changes.

        Args:
            batch: The sentence pairs.
            number: Number of the update; dropout depends on it.

        Returns:
            The summed cost of the batch in nats, its number of target words and ends, and the norm of the gradient.
        """
        self._shapes.add(tuple(batch.source.shape))
        seed = tf.constant([self._config.seed, number])
        batch = Batch(*map(tf.convert_to_tensor, batch))
        gradients = self._compiled(Batch(*map(tf.TensorSpec.from_tensor, batch)), tf.TensorSpec.from_tensor(seed))
        cost, words, norm, clipped = gradients(batch, seed)
        if math.isfinite(cost) and math.isfinite(norm):
            self._step(clipped)
        return float(cost), float(words), float(norm)

    def _gradients(self, batch: Batch, seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, Sequence[tf.Tensor]]:
        sums = sum_gradients(self._model, batch, self._config.label_smoothing, seed)
        clipped, norm = clip_mean(sums, self._config.clip_c)
        return sums.cost, sums.words, norm, [tf.convert_to_tensor(gradient) for gradient in clipped]


def _compiled(function: Callable, whole: bool) -> Callable:
    """Compiles a function with XLA, or only what is between its matrix products.

    On a CPU, TensorFlow's products in bfloat16 are several times as fast as those of XLA.
    """
    if whole:
        return tf.function(function, jit_compile=True, autograph=False)

    def in_pieces(*arguments):
        with tf.xla.experimental.jit_scope(lambda operation: operation.op not in _PRODUCTS):
            return function(*arguments)

    return tf.function(in_pieces, autograph=False)


def _divide(gradient: Gradient, number: tf.Tensor) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / number, gradient.indices, gradient.dense_shape)
    return gradient / number


def _reserve_memory() -> None:
    """Makes TensorFlow's CPU allocator reserve one large region.

    The allocator never returns or merges regions, so each wider batch would take a new one. Unused parts of the
    region cost no memory except the 3% that the allocator writes to.
    """
    with contextlib.suppress(tf.errors.ResourceExhaustedError), tf.device("CPU:0"):
        tf.raw_ops.Empty(shape=[_RESERVED_BYTES // tf.float32.size], dtype=tf.float32)
