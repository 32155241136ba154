"""The largest entries of long rows."""

import tensorflow as tf

_BLOCK = 32


def top_words(scores: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the `count` largest scores of each row, largest first, and their words.

    The result is that of `tf.math.top_k`, also in ties, where the first word wins. It is faster, because the largest
    entries are in the blocks that have the largest maxima.

    Args:
        scores: `[rows, words]`; the number of words is known.
        count: At most the number of words.
    """
    words = scores.shape[-1]
    blocks = -(-words // _BLOCK)
    if blocks < count:
        return tf.math.top_k(scores, count)
    padded = tf.pad(scores, [[0, 0], [0, blocks * _BLOCK - words]], constant_values=float("-inf"))
    in_blocks = tf.reshape(padded, [-1, blocks, _BLOCK])
    _, best = tf.math.top_k(tf.reduce_max(in_blocks, -1), count, sorted=False)
    best = tf.sort(best, -1)  # [rows, count], so that the first of equal entries stays the first
    candidates = tf.reshape(tf.gather(in_blocks, best, batch_dims=1), [-1, count * _BLOCK])
    top, places = tf.math.top_k(candidates, count)
    return top, tf.gather(best, places // _BLOCK, batch_dims=1) * _BLOCK + places % _BLOCK
