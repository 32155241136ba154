"""The equations of the Transformer, written again in NumPy."""

import math

import numpy as np
import pytest
import tensorflow as tf

from nmt.model.transformer import FIRST_WORD
from tests.nmt.model.blocks import layer_norm
from tests.nmt.model.transformers import (
    HEADS,
    MARIAN,
    SOURCE,
    SOURCE_MASK,
    TARGET,
    UNITS,
    make,
)

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2,
    "gelu_tanh": lambda x: x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Transcription:
    """The equations, sentence by sentence, in NumPy float64."""

    def __init__(self, model, position, activation="relu", waves=UNITS // 2 - 1, first=FIRST_WORD):
        self.weights = {weight.path: weight.numpy().astype(float) for weight in model.weights}
        self.is_pre = position == "pre"
        self.activation = ACTIVATIONS[activation]
        self.waves = waves
        self.first = first
        self.shares = {}  # what each attention was, the mean of its heads

    def norm(self, x, name):
        return layer_norm(x, self.weights, name)

    def residual(self, x, name, function):
        if self.is_pre:
            return x + function(self.norm(x, f"{name}_residual/norm"))
        return self.norm(x + function(x), f"{name}_residual/norm")

    def attention(self, x, memory, name, causal=False):
        q, k, v = (
            y @ self.weights[f"{name}/{part}"] + self.weights.get(f"{name}/{part}_bias", 0)
            for y, part in ((x, "queries"), (memory, "keys"), (memory, "values"))
        )
        found = []
        shares = []
        for head in np.split(np.arange(UNITS), HEADS):
            scores = q[:, head] @ k[:, head].T / np.sqrt(UNITS / HEADS)
            hidden = np.triu(np.full(scores.shape, -np.inf), 1) if causal else 0.0
            shares.append(softmax(scores + hidden))
            found.append(shares[-1] @ v[:, head])
        self.shares[name] = np.mean(shares, 0)
        return np.concatenate(found, -1) @ self.weights[f"{name}/output"] + self.weights.get(
            f"{name}/output_bias", 0
        )

    def feed_forward(self, x, name):
        w = {
            part: self.weights[f"{name}/{part}"]
            for part in ("inner_kernel", "inner_bias", "outer_kernel", "outer_bias")
        }
        return (
            self.activation(x @ w["inner_kernel"] + w["inner_bias"]) @ w["outer_kernel"]
            + w["outer_bias"]
        )

    def embed(self, ids, side):
        t = np.arange(len(ids))[:, None]
        i = np.arange(UNITS // 2)
        angles = t * 10000.0 ** (-i / self.waves)
        table = self.weights[f"{side}/embedding/embeddings"]
        return table[ids] * np.sqrt(UNITS) + np.concatenate([np.sin(angles), np.cos(angles)], -1)

    def final(self, x, side):
        return self.norm(x, f"{side}/final_norm") if self.is_pre else x

    def logits(self, source, target):
        layer = "encoder/layer_1"
        x = self.embed(source, "encoder")
        x = self.residual(
            x, f"{layer}/self_attention", lambda y: self.attention(y, y, f"{layer}/self_attention")
        )
        x = self.residual(
            x, f"{layer}/feed_forward", lambda y: self.feed_forward(y, f"{layer}/feed_forward")
        )
        context = self.final(x, "encoder")
        x = self.embed([self.first, *target[:-1]], "decoder")
        for layer in ("decoder/layer_1", "decoder/layer_2"):
            own, cross, feed = (
                f"{layer}/{name}" for name in ("self_attention", "cross_attention", "feed_forward")
            )
            x = self.residual(x, own, lambda y, name=own: self.attention(y, y, name, causal=True))
            x = self.residual(x, cross, lambda y, name=cross: self.attention(y, context, name))
            x = self.residual(x, feed, lambda y, name=feed: self.feed_forward(y, name))
        bias = self.weights.get("decoder/output_bias", 0)
        return self.final(x, "decoder") @ self.weights["decoder/output_kernel"].T + bias


@pytest.mark.parametrize("position", ["pre", "post"])
def test_the_equations(position):
    model = make("layernorm", position)
    found = model(SOURCE, SOURCE_MASK, TARGET).numpy()
    transcription = Transcription(model, position)
    for row in range(2):
        source = SOURCE[row][SOURCE_MASK[row] == 1]
        np.testing.assert_allclose(
            found[row], transcription.logits(source, TARGET[row]), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("position", ["pre", "post"])
def test_the_attention_of_a_layer_is_the_mean_of_its_heads(position):
    """By default of the last but one. Padding of the source gets none."""
    model = make("layernorm", position)
    transcription = Transcription(model, position)
    transcription.logits(SOURCE[1, :2], TARGET[1])
    for given, layer in (({"layer": 1}, 1), ({"layer": 2}, 2), ({}, 1)):
        found = model.attention(SOURCE, SOURCE_MASK, TARGET, **given).numpy()[1]
        expected = transcription.shares[f"decoder/layer_{layer}/cross_attention"]
        np.testing.assert_allclose(found[:, :2], expected, rtol=1e-4)
        assert not found[:, 2].any()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_equations_with_other_parts(activation):
    """Biases, another activation, the frequencies of the paper, and padding at first."""
    model = make("layernorm", "post", **(MARIAN | {"transformer_activation": activation}))
    assert model.first_word == 6
    transcription = Transcription(model, "post", activation, UNITS // 2, first=6)
    found = model(SOURCE, SOURCE_MASK, TARGET).numpy()
    np.testing.assert_allclose(
        found[1], transcription.logits(SOURCE[1, :2], TARGET[1]), rtol=1e-4, atol=1e-4
    )


def test_a_large_epsilon_makes_norms_smaller():
    near = make("layernorm", "post", transformer_norm_epsilon=1e-9)
    far = make("layernorm", "post", transformer_norm_epsilon=1.0)
    norms = [each.encoder.stack[0].feed_forward_residual.norm for each in (near, far)]
    for norm in norms:
        norm.beta.assign(tf.zeros([UNITS]))
    x = np.random.default_rng(1).normal(size=[3, UNITS]).astype(np.float32)
    variance = x.var(-1, keepdims=True)
    np.testing.assert_allclose(
        norms[1](x), norms[0](x) * np.sqrt(variance / (variance + 1)), rtol=1e-5
    )
