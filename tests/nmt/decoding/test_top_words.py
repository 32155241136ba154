import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.top_words import top_words

INFINITE = float("inf")


@pytest.mark.parametrize("words", [10, 320, 330, 999])
@pytest.mark.parametrize("count", [1, 10])
@pytest.mark.parametrize("values", ["different", "few", "equal", "mostly infinite"])
def test_the_result_is_that_of_top_k(words, count, values):
    generator = np.random.default_rng(0)
    scores = {
        "different": generator.normal(size=(50, words)),
        "few": generator.integers(0, 3, (50, words)),
        "equal": np.zeros((50, words)),
        "mostly infinite": np.where(
            generator.random((50, words)) < 0.005, generator.normal(size=(50, words)), -INFINITE
        ),
    }[values].astype(np.float32)
    for found, expected in zip(top_words(tf.constant(scores), count), tf.math.top_k(scores, count), strict=True):
        np.testing.assert_array_equal(found, expected)
