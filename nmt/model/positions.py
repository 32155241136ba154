"""Positions of words as sinusoids, which are added to their embeddings."""

import math

import tensorflow as tf

_LONGEST_WAVE = 10_000.0


def sinusoids(first: tf.Tensor | int, count: tf.Tensor | int, units: int) -> tf.Tensor:
    """Returns the vectors `[sin(t w), cos(t w)]` of positions t, `[count, units]`.

    The frequencies w fall from 1 to 1 / 10,000 in a geometric series. Sines and cosines are halves side by side.

    Args:
        first: The first position.
        count: Number of positions.
        units: Size of the embeddings, an even number of at least 4.

    Reference: Vaswani et al. (2017), arXiv:1706.03762, section 3.5, where sines and cosines alternate.
    """
    half = units // 2
    frequencies = tf.exp(tf.range(half, dtype=tf.float32) * (-math.log(_LONGEST_WAVE) / (half - 1)))
    angles = tf.cast(tf.range(count) + first, tf.float32)[:, tf.newaxis] * frequencies  # [count, half]
    return tf.concat([tf.sin(angles), tf.cos(angles)], -1)
