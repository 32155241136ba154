"""Makes one update: gradients of the parts of a batch, sum, mean, clipping, Adam, smoothing."""

import contextlib
import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import keras
import tensorflow as tf

from ..config import Config
from ..model.contract import TranslationModel
from ..text.batches import Batch
from .optimizer import Adam
from .replicas import Replicas

_RESERVED_BYTES = 2**31  # more than most updates need
# After update t, the share of the newest weights is at least 9 / (t + 9), as in Marian.
_EARLY = 9.0
_BATCH = Batch(*(tf.TensorSpec([None, None], dtype) for dtype in (tf.int32, tf.float32) * 2))

Gradient = tf.Tensor | tf.IndexedSlices


class Sums(NamedTuple):
    """Sums over the sentences of a batch. Add them to combine several batches or replicas."""

    cost: tf.Tensor  # of the target words and ends, in nats
    words: tf.Tensor  # target words and ends
    sentences: tf.Tensor
    gradients: list[Gradient]  # of the cost, one for each variable


# Cost, words, norm before clipping, and the clipped gradients for the optimizer.
Clipped = tuple[tf.Tensor, tf.Tensor, tf.Tensor, list[tf.Tensor]]


def sum_gradients(
    model: TranslationModel, batch: Batch, label_smoothing: float, dropout_seed: tf.Tensor
) -> Sums:
    """Returns the summed cost of a batch and its gradients."""
    with tf.GradientTape() as tape:
        cost = model.total_cost(*batch, label_smoothing=label_smoothing, dropout_seed=dropout_seed)
    gradients = tape.gradient(cost, model.trainable_variables)
    return Sums(
        cost, tf.reduce_sum(batch.target_mask), tf.reduce_sum(batch.target_mask[:, 0]), gradients
    )


def add_sums(first: Sums, second: Sums) -> Sums:
    """Returns the sums over the sentences of two batches."""
    gradients = [_add(*pair) for pair in zip(first.gradients, second.gradients, strict=True)]
    return Sums(*(a + b for a, b in zip(first[:-1], second[:-1], strict=True)), gradients)


def clip_mean(sums: Sums, config: Config) -> tuple[list[Gradient], tf.Tensor]:
    """Returns the gradients of the mean cost, scaled to a global norm of at most `clip_c`, and
    their norm.

    `sums` are those over all parts of the batch and all processes. The rows of a sparse gradient
    are one for each occurrence of a word; where `clip_counts` is `words`, those of a word are
    summed before the norm.
    """
    count = sums.words if config.loss_function == "per-token-cross-entropy" else sums.sentences
    gradients = [tf.math.scalar_mul(1 / count, gradient) for gradient in sums.gradients]
    if config.clip_counts == "words":
        gradients = list(map(tf.convert_to_tensor, gradients))
    if not config.clip_c:
        return gradients, tf.linalg.global_norm(gradients)
    return tf.clip_by_global_norm(gradients, config.clip_c)


def split(batch: Batch, parts: int) -> list[Batch]:
    """Splits a batch into parts of equally many rows.

    Rows that only fill the last parts have no target words.
    """
    rows = -(-batch.source.shape[0] // parts)
    missing = parts * rows - batch.source.shape[0]
    filler = [x[:1] for x in batch[:3]] + [tf.zeros_like(batch.target_mask[:1])]
    full = [tf.concat([x, *[fill] * missing], 0) for x, fill in zip(batch, filler, strict=True)]
    columns = [tf.split(x, parts) for x in full]
    return [Batch(*part) for part in zip(*columns, strict=True)]


class Update:
    """Updates a model from a batch.

    The processes of `replicas` add up their gradients; by default, there is one.
    """

    def __init__(self, model: TranslationModel, config: Config, replicas: Replicas | None = None):
        _reserve_memory()
        self.model = model
        self.config = config
        self.replicas = replicas or Replicas()
        self._optimizer = Adam(config, model.trainable_variables)
        self.smoothed = SmoothedWeights(model, config.exponential_smoothing)
        self._in_one_part = config.gradient_aggregation_steps == self.replicas.count == 1
        function = self._clipped if self._in_one_part else self._summed
        # On a CPU, TensorFlow's products in bfloat16 are faster than XLA's.
        compiled = config.dtype == "float32" or bool(tf.config.list_physical_devices("GPU"))
        signature = _BATCH, tf.TensorSpec([2], tf.int32)
        self._gradients = tf.function(function, signature, autograph=False, jit_compile=compiled)
        self._step = tf.function(self._apply, autograph=False)

    @property
    def variables(self) -> list[keras.Variable]:
        """Everything that updates change: the variables of the model and of the optimizer."""
        return [*self.model.variables, *self._optimizer.variables, *self.smoothed.variables]

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last update that was not skipped."""
        return float(self._optimizer.rate(max(int(self._optimizer.iterations.numpy()) - 1, 0)))

    def reduce_learning_rate(self, factor: float) -> None:
        """Makes the learning rate of the next updates that of the schedule times a factor."""
        self._optimizer.rate.factor.assign(factor)

    def trace(self) -> None:
        """Traces the gradients.

        The names of operations count what was made before, and the cache of XLA compares them. So
        trace at the same point of every training: before its weights or texts are read.
        """
        self._gradients.get_concrete_function()

    def gradients(self, batch: Batch, number: int) -> Sums | Clipped:
        """Returns what this process adds to an update, and changes nothing.

        Compiles for the first batch of a shape.
        """
        batch = Batch(*map(tf.convert_to_tensor, batch))
        steps = self.config.gradient_aggregation_steps
        # Each part has its own dropout.
        first = (number * self.replicas.count + self.replicas.rank) * steps
        parts = enumerate(split(batch, steps) if steps > 1 else [batch], first)
        found = (self._gradients(part, tf.constant([self.config.seed, at])) for at, part in parts)
        return functools.reduce(add_sums, found)

    def apply(self, gradients: Sums | Clipped) -> tuple[float, float, float]:
        """Adds up the gradients of all processes and makes one update.

        If the loss or its gradient is not finite, nothing changes.

        Returns: The summed cost of the batch in nats, its number of target words and ends, and the
            norm of the gradient.
        """
        cost, words, norm, clipped = (
            gradients if self._in_one_part else self._clip(self.replicas.sum(gradients))
        )
        if math.isfinite(cost) and math.isfinite(norm):
            self._step(clipped)
        return float(cost), float(words), float(norm)

    def __call__(self, batch: Batch, number: int) -> tuple[float, float, float]:
        """Makes one update from a batch; see `gradients` and `apply`."""
        return self.apply(self.gradients(batch, number))

    def _summed(self, batch: Batch, seed: tf.Tensor) -> Sums:
        return sum_gradients(self.model, batch, self.config.label_smoothing, seed)

    def _clipped(self, batch: Batch, seed: tf.Tensor) -> Clipped:
        return self._clip(self._summed(batch, seed))

    def _clip(self, sums: Sums) -> Clipped:
        clipped, norm = clip_mean(sums, self.config)
        return sums.cost, sums.words, norm, [tf.convert_to_tensor(gradient) for gradient in clipped]

    def _apply(self, gradients: list[tf.Tensor]) -> None:
        self._optimizer.apply(gradients)
        self.smoothed.follow(self._optimizer.iterations.value)


class SmoothedWeights:
    """A moving average of the weights of a model, to validate and keep; none if the factor is 0.

    After update t, the average moves towards the weights by the share `max(factor, 9 / (t + 9))`.
    The first updates have a larger share, so that the initial weights are soon forgotten.

    Reference: Junczys-Dowmunt et al. (2018), arXiv:1804.00344.
    """

    def __init__(self, model: TranslationModel, factor: float):
        self._weights = model.trainable_variables if factor else []
        self._factor = factor
        with keras.name_scope("smoothed"):
            self.variables = [
                keras.Variable(weight.numpy(), trainable=False, name=weight.path.replace("/", "_"))
                for weight in self._weights
            ]

    def begin(self) -> None:
        """Makes the averages the weights of the model. Call it after other weights were loaded."""
        for average, weight in self._pairs():
            average.assign(weight.value)

    def _pairs(self) -> Iterator[tuple[keras.Variable, keras.Variable]]:
        return zip(self.variables, self._weights, strict=True)

    def follow(self, updates: tf.Tensor) -> None:
        share = tf.maximum(self._factor, _EARLY / (tf.cast(updates, tf.float32) + _EARLY))
        for average, weight in self._pairs():
            average.assign_add(share * (weight.value - average.value))

    @contextlib.contextmanager
    def swapped(self) -> Iterator[None]:
        """Gives the model the averages for weights within this context."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def _exchange(self) -> None:
        for average, weight in self._pairs():
            value = weight.numpy().copy()  # numpy() may share its memory
            weight.assign(average.value)
            average.assign(value)


def _add(a: Gradient, b: Gradient) -> Gradient:
    if isinstance(a, tf.IndexedSlices):
        pairs = zip((a.values, a.indices), (b.values, b.indices), strict=True)
        return tf.IndexedSlices(*(tf.concat(pair, 0) for pair in pairs), a.dense_shape)
    return a + b


def _reserve_memory() -> None:
    """Makes TensorFlow's CPU allocator reserve one large region.

    The allocator never returns or merges regions, so each wider batch would take a new one. Unused
    parts of the region cost little memory: only the few pages that the allocator writes to.
    """
    with contextlib.suppress(tf.errors.ResourceExhaustedError), tf.device("CPU:0"):
        tf.raw_ops.Empty(shape=[_RESERVED_BYTES // tf.float32.size], dtype=tf.float32)
