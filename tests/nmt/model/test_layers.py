"""The shared layers against their equations in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.model.layers import Embedding, Projection
from nmt.normalization import Normalization

from .blocks import fill, layer_norm, normal


def test_projection_normalises_after_the_bias():
    layer = Projection(3, 4, Normalization("layernorm"), "projection")
    weights = fill(layer)
    x = normal(2, 5, 3)
    expected = layer_norm(x @ weights["kernel"] + weights["bias"], weights, "norm")
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)


def test_embedding_of_no_word_is_zero():
    layer = Embedding(5, 3, "embedding")
    table = fill(layer)["embeddings"]
    np.testing.assert_array_equal(layer(tf.constant([[4, -1]])), [[table[4], np.zeros(3)]])


@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (32, 24)])
def test_square_matrices_start_orthogonal_and_others_small(rows, columns):
    kernel = Projection(rows, columns, Normalization("none"), "projection").kernel.numpy()
    if rows == columns:
        np.testing.assert_allclose(kernel.T @ kernel, np.eye(rows), atol=1e-5)
    else:
        np.testing.assert_allclose(kernel.std(), 0.01, rtol=0.15)
