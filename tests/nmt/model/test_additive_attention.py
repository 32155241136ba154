"""Additive attention and its gradient against their equations."""

import numpy as np
import tensorflow as tf

from nmt.model.additive_attention import AdditiveAttention
from nmt.normalization import Normalization

from .blocks import fill, layer_norm, normal


def test_attention():
    layer = AdditiveAttention(6, 3, Normalization("layernorm"), "attention")
    weights = fill(layer)
    context = normal(2, 4, 6)
    state = normal(2, 3)
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)
    hidden = layer_norm(
        context @ weights["context_to_hidden"] + weights["hidden_bias"],
        weights,
        "hidden_context_norm",
    )
    query = layer_norm(state @ weights["state_to_hidden"], weights, "hidden_state_norm")
    energy = (np.tanh(hidden + query[:, None]) @ weights["hidden_to_score"])[..., 0]
    shares = np.exp(energy) * mask
    shares /= shares.sum(1, keepdims=True)
    expected = (shares[..., None] * context).sum(1)
    found = layer.attend(state, context, layer.project_context(context), mask)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    weights = layer.attention_weights(state, layer.project_context(context), mask)
    np.testing.assert_allclose(weights, shares, rtol=1e-5, atol=1e-6)


def test_the_gradient_of_attention_is_that_of_its_equation():
    layer = AdditiveAttention(6, 3, Normalization("none"), "attention")
    fill(layer)
    to_hidden = layer.state_to_hidden.value
    to_score = layer.hidden_to_score.value
    mask = tf.constant([[1.0, 1, 1, 1], [1, 1, 0, 0]])
    shape = tf.TensorSpec([None, None, 6])

    def equation(state, context, projected):
        energy = tf.tanh(projected + (state @ to_hidden)[:, tf.newaxis]) @ to_score
        shares = tf.exp(energy) * mask[..., tf.newaxis]
        return tf.reduce_sum(shares * context, 1) / tf.reduce_sum(shares, 1)

    def attended(state, context, projected):
        return tf.linalg.matvec(
            context, layer.attention_weights(state, projected, mask), transpose_a=True
        )

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), shape, shape])
    def gradients(*given):
        found = []
        for attend in (equation, attended):
            with tf.GradientTape() as tape:
                tape.watch(given)
                cost = tf.reduce_sum(attend(*given) ** 3)
            found.append(tape.gradient(cost, [*given, to_hidden, to_score]))
        return found

    for expected, found in zip(
        *gradients(normal(2, 3), normal(2, 4, 6), normal(2, 4, 6)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
