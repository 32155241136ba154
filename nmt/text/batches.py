"""Sentence pairs as padded matrices of token ids."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tensorflow as tf

from .vocabulary import END, Vocabulary

LONGEST = 1000  # tokens of the longest sentence that is translated or scored as a whole; bounds the memory
TOKENS = 8192  # limit of the tokens of a batch that is translated or scored, padding included; bounds the memory


class Batch(NamedTuple):
    """Sentence pairs. Ids are padded with `END`; a mask is 1 on the words and on the first `END` after them.

    Rows that only fill up the batch have a target mask of zeros.
    """

    source: tf.Tensor  # [batch, source_time]
    source_mask: tf.Tensor  # [batch, source_time]
    target: tf.Tensor  # [batch, target_time]
    target_mask: tf.Tensor  # [batch, target_time]


def pad(ids: tf.RaggedTensor, width: tf.Tensor | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Pads ids `[batch, (tokens)]` to `[batch, width]` and returns them with their mask.

    By default the width fits the longest row and its end.
    """
    dense = ids.to_tensor(END)
    longest = tf.shape(dense)[1]
    width = longest + 1 if width is None else width
    mask = tf.sequence_mask(ids.row_lengths() + 1, width, tf.float32)
    return tf.pad(dense, [[0, 0], [0, width - longest]], constant_values=END), mask


def encode_pairs(
    pairs: Sequence[tuple[bytes, bytes]], source_vocabulary: Vocabulary, target_vocabulary: Vocabulary
) -> Batch:
    """Returns the batch of these pairs of lines."""
    sources, targets = zip(*pairs, strict=True)
    return Batch(*pad(source_vocabulary.encode(sources)), *pad(target_vocabulary.encode(targets)))


def token_pieces(lengths: Sequence[int], tokens: int = TOKENS) -> Iterator[tuple[int, int]]:
    """Yields the bounds of consecutive pieces that have at most this many tokens, padding counted, or one sentence."""
    start, longest = 0, 0
    for number, length in enumerate(lengths):
        longest = max(longest, length)
        if number > start and longest * (number + 1 - start) > tokens:
            yield start, number
            start, longest = number, length
    if start < len(lengths):
        yield start, len(lengths)
