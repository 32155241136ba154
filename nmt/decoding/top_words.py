"""The best extensions of the hypotheses of each sentence, out of long rows of logits."""

import tensorflow as tf

# Words in a block, the best first. Maxima of multiples of 8 are fast, and a divisor of the vocabulary needs no padding,
# which would copy all logits.
_SIZES = (40, 32, 48, 24, 56, 64, 16)


def top_words(logits: tf.Tensor, costs: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns the `count` largest of `logits - costs` of each sentence, largest first, their rows and their words.

    The result is that of `tf.math.top_k` on all of them, also in ties, where the first wins. It is faster, because the
    largest are in the blocks of words that have the largest maxima, and only those are looked at.

    Args:
        logits: `[batch, rows, words]`; the numbers of rows and words are known.
        costs: `[batch, rows]`.
        count: At most the number of words of all rows.
    """
    _, rows, words = logits.shape
    size = next((size for size in _SIZES if words % size == 0), _SIZES[0])
    blocks = -(-words // size)
    if rows * blocks < count:
        blocks, size = words, 1
    elif words % size:
        logits = tf.pad(logits, [[0, 0], [0, 0], [0, blocks * size - words]], constant_values=float("-inf"))
    in_blocks = tf.reshape(logits, [-1, rows * blocks, size])
    maxima = tf.reshape(tf.reduce_max(in_blocks, -1), [-1, rows, blocks]) - costs[..., tf.newaxis]
    _, best = tf.math.top_k(tf.reshape(maxima, [-1, rows * blocks]), count, sorted=False)
    best = -tf.math.top_k(-best, count)[0]  # [batch, count], ascending: the first of equal entries stays the first
    candidates = (
        tf.gather(in_blocks, best, batch_dims=1) - tf.gather(costs, best // blocks, batch_dims=1)[..., tf.newaxis]
    )
    top, places = tf.math.top_k(tf.reshape(candidates, [-1, count * size]), count)
    chosen = tf.gather(best, places // size, batch_dims=1)
    found = chosen % blocks * size + places % size
    return top, chosen // blocks, found if words % size == 0 else tf.minimum(found, words - 1)  # not the padding
