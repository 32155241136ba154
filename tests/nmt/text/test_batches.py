"""Padded batches as literal matrices."""

import numpy as np

from nmt.text.batches import cut_batches, ragged, rows_of
from tests.nmt.pairs import encode_pairs


def test_a_batch_is_padded_with_ends_and_masked_after_the_first(vocabulary):
    batch = encode_pairs([(b"a b c", b"d"), (b"", b"x d")], vocabulary, vocabulary)
    np.testing.assert_array_equal(batch.source, [[2, 3, 4, 0], [0, 0, 0, 0]])
    np.testing.assert_array_equal(batch.source_mask, [[1, 1, 1, 1], [1, 0, 0, 0]])
    np.testing.assert_array_equal(batch.target, [[5, 0, 0], [1, 5, 0]])
    np.testing.assert_array_equal(batch.target_mask, [[1, 1, 0], [1, 1, 1]])


def test_batches_have_at_most_so_many_tokens_with_their_padding_or_one_sentence():
    def cut(lengths, sentences, tokens):
        return [batch.tolist() for batch in cut_batches(np.array(lengths, int), sentences, tokens)]

    assert cut([3, 3, 5, 9], 9, 10) == [[3], [2, 0], [1]]
    assert cut([1, 20], 9, 10) == [[1], [0]]
    assert cut([2, 2, 2], 9, 6) == [[0, 1, 2]]
    assert cut([2, 2, 2], 9, 5) == [[0, 1], [2]]
    assert cut([2, 2, 2], 2, 6) == [[0, 1], [2]]
    assert cut([], 9, 6) == []


def test_no_batch_has_more_tokens_than_the_limit_and_none_could_have_another_sentence():
    rng = np.random.default_rng(1)
    for _ in range(50):
        lengths = rng.integers(1, 30, rng.integers(1, 60))
        sentences = rng.integers(1, 20)
        tokens = rng.integers(30, 90)
        batches = list(cut_batches(lengths, sentences, tokens))
        assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
        for number, batch in enumerate(batches):
            longest = lengths[batch].max()
            assert len(batch) <= min(sentences, tokens // longest)
            assert number == len(batches) - 1 or len(batch) == min(sentences, tokens // longest)


def test_rows_come_back_from_a_ragged_tensor():
    rows = [np.array([3, 1], np.int32), np.zeros(0, np.int32), np.array([2], np.int32)]
    assert [row.tolist() for row in rows_of(ragged(rows))] == [[3, 1], [], [2]]
    assert ragged([]).shape[0] == 0
