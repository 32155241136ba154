"""Computes the cross entropy of words, and its sum without the logits of a whole batch."""

from collections.abc import Callable

import tensorflow as tf

_PARTS = 8  # the fastest (docs/translation-speed.md); one part still keeps all cores busy
_USUAL = (1e-20, 1e20)  # sums of exponentials that are far from the limits of float32


def word_costs(logits: tf.Tensor, words: tf.Tensor, label_smoothing: float = 0.0) -> tf.Tensor:
    """Returns the cross entropy of each word in nats, `[...]`.

    Args:
        logits: `[..., vocabulary]`.
        words: `[...]`, the right words.
        label_smoothing: Share of the probability that moves from the right word to the uniform
            distribution over all.
    """
    with tf.name_scope("softmax"):  # its name in a profile
        right = tf.gather(logits, words, batch_dims=logits.shape.rank - 1)
        costs = tf.reduce_logsumexp(logits, -1) - right
        if label_smoothing:
            costs += label_smoothing * (right - tf.reduce_mean(logits, -1))
    return costs


def log_normalizers(logits: tf.Tensor) -> tf.Tensor:
    """Returns the logarithm of the sum of the exponentials, `[rows]`, of logits `[rows, words]`.

    Usual logits need no shift before the exponentials, which saves two passes over all of them.
    """
    sums = tf.reduce_sum(tf.exp(logits), -1)
    usual = tf.reduce_all((sums > _USUAL[0]) & (sums < _USUAL[1]))
    return tf.cond(usual, lambda: tf.math.log(sums), lambda: tf.reduce_logsumexp(logits, -1))


def sum_in_parts(
    function: Callable[..., tf.Tensor], rows: tuple[tf.Tensor, ...], weights: tuple[tf.Tensor, ...]
) -> tf.Tensor:
    """Returns the sum of a function over rows, computed together with its gradient one part of the
    rows at a time.

    Memory holds the intermediate results of one part only.

    Args:
        function: Maps a part of each of `rows`, and `weights`, to a scalar that depends on every
            weight. A row of zeros adds nothing to it.
        rows: Tensors `[rows, ...]`. Only the first has a gradient.
        weights: Tensors that all rows share. Each has a gradient.
    """

    @tf.custom_gradient
    def total(x, *weights):
        parts = [_split(each) for each in (x, *rows[1:])]

        def add_part(i, value, d_weights, d_parts):
            part = [each[i] for each in parts]
            sources = (part[0], *weights)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                added = function(*part, *weights)
            d_part, *d_added = tape.gradient(added, sources)
            d_weights = [a + b for a, b in zip(d_weights, d_added, strict=True)]
            return i + 1, value + added, d_weights, d_parts.write(i, d_part)

        d_parts = tf.TensorArray(x.dtype, _PARTS, element_shape=parts[0].shape[1:])
        start = 0, tf.zeros([], x.dtype), [tf.zeros_like(weight) for weight in weights], d_parts
        _, value, d_weights, d_parts = tf.while_loop(
            lambda i, *_: i < _PARTS, add_part, start, parallel_iterations=1
        )
        d_x = tf.reshape(d_parts.stack(), [-1, *x.shape[1:]])[: tf.shape(x)[0]]
        return value, lambda d: [d * each for each in (d_x, *d_weights)]

    return total(rows[0], *weights)


def _split(x: tf.Tensor) -> tf.Tensor:
    """Returns `[rows, ...]` as `[parts, rows, ...]`, with the last part padded with zeros."""
    missing = -tf.shape(x)[0] % _PARTS
    filled = tf.pad(x, [[0, missing]] + [[0, 0]] * (len(x.shape) - 1))
    return tf.reshape(filled, [_PARTS, -1, *x.shape[1:]])
