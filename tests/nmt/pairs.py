"""Sentence pairs as a batch, for tests of models."""

from collections.abc import Sequence

from nmt.text.batches import Batch, pad
from nmt.text.vocabulary import Vocabulary


def encode_pairs(
    pairs: Sequence[tuple[bytes, bytes]],
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
) -> Batch:
    """Returns the batch of these pairs of lines."""
    sources, targets = zip(*pairs, strict=True)
    return Batch(*pad(source_vocabulary.encode(sources)), *pad(target_vocabulary.encode(targets)))
