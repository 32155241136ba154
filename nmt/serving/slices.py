"""A batch of any size, computed in slices that fit into the memory."""

from collections.abc import Callable

import tensorflow as tf

from ..text.batches import TOKENS

SENTENCES = 128  # limit of the sentences in a slice

Tensors = tuple[tf.Tensor | tf.RaggedTensor, ...]


def in_slices(function: Callable[..., Tensors], inputs: Tensors, lengths: tf.Tensor, nothing: Tensors) -> Tensors:
    """Returns the results of a function for every row, in the order of the rows.

    A slice holds rows of similar lengths. Its size is limited by `SENTENCES` and `TOKENS`.

    Args:
        function: Maps tensors `[rows, ...]` to tensors `[rows, ...]`, each row for itself.
        inputs: Tensors `[batch, ...]`, which may be ragged.
        lengths: Tokens of each row, `[batch]`.
        nothing: The results for no rows, `[0, ...]`.
    """
    lengths = tf.cast(lengths, tf.int32)
    order = tf.argsort(lengths, direction="DESCENDING", stable=True)
    batch = tf.shape(lengths)[0]

    def advance(start: tf.Tensor, found: Tensors) -> tuple[tf.Tensor, Tensors]:
        longest = lengths[order[start]] + 1  # with the end of the sentence
        end = tf.minimum(batch, start + tf.clip_by_value(TOKENS // longest, 1, SENTENCES))
        added = function(*(tf.gather(x, order[start:end]) for x in inputs))
        return end, tuple(tf.concat(pair, 0) for pair in zip(found, added, strict=True))

    _, found = tf.while_loop(
        lambda start, _: start < batch,
        advance,
        (tf.constant(0), nothing),
        (tf.TensorShape([]), tuple(tf.TensorShape([None, *x.shape[1:]]) for x in nothing)),
        parallel_iterations=1,
    )
    position = tf.math.invert_permutation(order)
    return tuple(tf.gather(x, position) for x in found)
