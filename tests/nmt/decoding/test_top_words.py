"""The largest entries of long rows, found by blocks."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.search import top_words


@pytest.mark.parametrize("kind", ["random", "ties", "infinite"])
@pytest.mark.parametrize("words", [3, 31, 40, 64, 700, 6001])
@pytest.mark.parametrize("rows", [1, 3])
def test_equals_top_k_also_in_ties(words, rows, kind):
    rng = np.random.default_rng(words)
    logits = rng.normal(size=[5, rows, words]).astype(np.float32)
    costs = rng.normal(size=[5, rows]).astype(np.float32)
    if kind == "ties":
        logits = np.round(logits)
        costs = np.round(costs)
    if kind == "infinite":
        logits[:, :, words // 2 :] = -np.inf
        costs[:, 1:] = np.inf
    for count in (1, 2, min(10, words)):
        found, parents, best = top_words(tf.constant(logits), tf.constant(costs), count)
        expected, places = tf.math.top_k(
            tf.reshape(logits - costs[..., np.newaxis], [5, -1]), count
        )
        np.testing.assert_array_equal(found, expected)
        finite = np.isfinite(expected)
        np.testing.assert_array_equal((parents * words + best)[finite], places[finite])
