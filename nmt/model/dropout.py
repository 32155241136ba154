"""Dropout masks. A recurrent model reuses the mask of a sequence at every time step, as in Nematus."""

import tensorflow as tf

_GENERATOR = "philox"  # gives the same numbers with and without XLA, whose default is slow


class DropoutMasks:
    """Draws the dropout masks of one update from one seed.

    Mask i is a pure function of the seed and i, so the same seed gives the same update.

    Args:
        seed: Integer tensor `[2]`, or `None` for no dropout.
    """

    def __init__(self, seed: tf.Tensor | None = None):
        self._seed = seed
        self._drawn = 0

    def draw(self, rate: float, shape) -> tf.Tensor | None:
        """Returns a mask of `shape` with entries 0 and 1 / (1 - rate), or `None` where nothing is dropped."""
        if self._seed is None or rate == 0.0:
            return None
        self._drawn += 1
        seed = tf.add(tf.cast(self._seed, tf.int64), [self._drawn << 32, 0])  # a different one for each mask
        kept = tf.random.stateless_uniform(shape, seed, alg=_GENERATOR) >= rate
        return tf.cast(kept, tf.float32) / (1.0 - rate)


def drop(x: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Multiplies by a mask that broadcasts to `x`; `[batch, units]` serves every step of `[batch, time, units]`."""
    if mask is None:
        return x
    if len(x.shape) == 3 and len(mask.shape) == 2:
        mask = mask[:, tf.newaxis]  # [batch, 1, units]
    return x * mask
