"""Padded batches as literal matrices."""

import numpy as np

from nmt.text.batches import encode_pairs, token_pieces


def test_a_batch_is_padded_with_ends_and_masked_after_the_first(vocabulary):
    batch = encode_pairs([(b"a b c", b"d"), (b"", b"x d")], vocabulary, vocabulary)
    np.testing.assert_array_equal(batch.source, [[2, 3, 4, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(batch.source_mask, [[1, 1, 1, 1], [1, 0, 0, 0]])
    np.testing.assert_array_equal(batch.target, [[5, 0, 0], [1, 5, 0]])
    np.testing.assert_array_equal(batch.target_mask, [[1, 1, 0], [1, 1, 1]])


def test_pieces_have_at_most_so_many_tokens_with_their_padding_or_one_sentence():
    assert list(token_pieces([3, 3, 5, 9], 10)) == [(0, 2), (2, 3), (3, 4)]
    assert list(token_pieces([20, 1], 10)) == [(0, 1), (1, 2)]
    assert list(token_pieces([2, 2, 2], 6)) == [(0, 3)]
    assert list(token_pieces([], 6)) == []
