"""Pads sentence pairs to matrices of token ids, and groups sentences by length."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from .vocabulary import END

# Limits that bound the memory of translating and scoring.
LONGEST = 1000  # tokens of the longest sentence that is computed as a whole
TOKENS = 8192  # of a batch, padding included


class Batch(NamedTuple):
    """Sentence pairs. Ids are padded with `END`; a mask is 1 on the words and on the first `END`
    after them.

    Rows that only fill up the batch have a target mask of zeros.
    """

    source: tf.Tensor  # [batch, source_time]
    source_mask: tf.Tensor  # [batch, source_time]
    target: tf.Tensor  # [batch, target_time]
    target_mask: tf.Tensor  # [batch, target_time]


def pad(ids: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Pads ids `[batch, (tokens)]` to the longest row and its end; returns them with their mask."""
    dense = tf.pad(ids.to_tensor(END), [[0, 0], [0, 1]], constant_values=END)
    return dense, tf.sequence_mask(ids.row_lengths() + 1, tf.shape(dense)[1], tf.float32)


def pad_rows(rows: Sequence[np.ndarray], width: int) -> tuple[np.ndarray, np.ndarray]:
    """Pads rows of ids to `[rows, width]` and returns them with their mask.

    In eager mode, `pad` takes longer.
    """
    lengths = np.array([len(row) for row in rows])[:, np.newaxis]
    ids = np.full([len(rows), width], END, np.int32)
    positions = np.arange(width)
    ids[positions < lengths] = np.concatenate([*rows, np.zeros(0, np.int32)])
    return ids, (positions <= lengths).astype(np.float32)


def cut_batches(lengths: np.ndarray, sentences: int, tokens: int) -> Iterator[np.ndarray]:
    """Yields the numbers of the items of each batch, the longest first.

    Args:
        lengths: Tokens of each item, its end counted.
        sentences: Most items in a batch.
        tokens: Most tokens in a batch, padding counted; a longer item is a batch of its own.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    start = 0
    while start < len(order):
        count = min(sentences, max(1, tokens // max(1, int(lengths[order[start]]))))
        yield order[start : start + count]
        start += count


def rows_of(ids: tf.RaggedTensor) -> list[np.ndarray]:
    """Returns the ids of each row of `[batch, (tokens)]`."""
    return np.split(ids.flat_values.numpy(), ids.row_splits.numpy()[1:])[:-1]


def ragged(rows: Sequence[np.ndarray]) -> tf.RaggedTensor:
    """Returns rows of ids as `[batch, (tokens)]`."""
    flat = np.concatenate([*rows, np.zeros(0, np.int32)]).astype(np.int32)
    return tf.RaggedTensor.from_row_lengths(flat, np.array([len(row) for row in rows], np.int64))
