"""The building blocks against their equations in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.model.layers import Attention, DropoutMasks, Embedding, GRUMasks, GRUStep, Projection, drop

RNG = np.random.default_rng(0)
SEED = tf.constant([1, 2])


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def fill(layer):
    """Sets every weight to random numbers and returns them by name."""
    for weight in layer.weights:
        weight.assign(normal(*weight.shape))
    return {weight.path.partition("/")[2]: weight.numpy() for weight in layer.weights}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer_norm(x, weights, name):
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * weights[f"{name}/gamma"] + weights[f"{name}/beta"]


def gru(x, h, weights, norm, bias_on_state):
    """One step of the GRU, as its docstring has it."""
    gates_bias, proposal_bias = weights["gates_bias"], weights["proposal_bias"]
    input_biases = (0, 0) if bias_on_state else (gates_bias, proposal_bias)
    state_biases = (gates_bias, proposal_bias) if bias_on_state else (0, 0)
    gates = norm(x @ weights["input_to_gates"] + input_biases[0], weights, "gates_x_norm")
    gates = gates + norm(h @ weights["state_to_gates"] + state_biases[0], weights, "gates_state_norm")
    reset, update = np.split(sigmoid(gates), 2, axis=-1)
    proposal = norm(h @ weights["state_to_proposal"] + state_biases[1], weights, "proposal_state_norm")
    candidate = np.tanh(
        norm(x @ weights["input_to_proposal"] + input_biases[1], weights, "proposal_x_norm") + reset * proposal
    )
    return update * h + (1 - update) * candidate


@pytest.mark.parametrize("bias_on_state", [False, True])
@pytest.mark.parametrize(("kind", "norm"), [("none", lambda x, weights, name: x), ("layernorm", layer_norm)])
def test_gru_step(kind, norm, bias_on_state):
    layer = GRUStep(3, 4, kind, bias_on_state=bias_on_state, name="gru")
    weights = fill(layer)
    x, h = normal(2, 3), normal(2, 4)
    np.testing.assert_allclose(
        layer.step(h, layer.project_input(x)), gru(x, h, weights, norm, bias_on_state), rtol=1e-5, atol=1e-6
    )


def test_gru_projects_all_time_steps_at_once(kind):
    layer = GRUStep(3, 4, kind, name="gru")
    fill(layer)
    x = normal(2, 5, 3)
    for at_once, step_by_step in zip(
        layer.project_input(x), zip(*(layer.project_input(x[:, t]) for t in range(5)), strict=True), strict=True
    ):
        np.testing.assert_allclose(at_once, np.stack(step_by_step, 1), rtol=1e-5, atol=1e-6)


def test_gru_masks_each_projection_on_its_own():
    """A mask of zeros for one projection takes away just what that one contributes."""
    layer = GRUStep(3, 4, "none", name="gru")
    weights = fill(layer)
    x, h = normal(2, 3), normal(2, 4)
    matrices = {"input_to_gates": 3, "input_to_proposal": 3, "state_to_gates": 4, "state_to_proposal": 4}
    for name, units in matrices.items():
        masks = GRUMasks(**{name: tf.zeros([2, units])})
        without = {**weights, name: np.zeros_like(weights[name])}
        expected = gru(x, h, without, lambda x, weights, name: x, False)
        np.testing.assert_allclose(layer.step(h, layer.project_input(x, masks), masks), expected, rtol=1e-5, atol=1e-6)


def test_attention():
    layer = Attention(6, 3, "layernorm", "attention")
    weights = fill(layer)
    context, state = normal(2, 4, 6), normal(2, 3)
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)
    hidden = layer_norm(context @ weights["context_to_hidden"] + weights["hidden_bias"], weights, "hidden_context_norm")
    query = layer_norm(state @ weights["state_to_hidden"], weights, "hidden_state_norm")
    energy = (np.tanh(hidden + query[:, None]) @ weights["hidden_to_score"])[..., 0]
    shares = np.exp(energy) * mask
    shares /= shares.sum(1, keepdims=True)
    expected = (shares[..., None] * context).sum(1)
    found = layer.step(state, context, layer.project_context(context), mask)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [4, None])
@pytest.mark.parametrize("units", [6, 5])
def test_the_gradient_of_attention_is_that_of_its_equation(units, width):
    layer = Attention(units, 3, "none", "attention")
    fill(layer)
    to_hidden, to_score = layer.state_to_hidden.value, layer.hidden_to_score.value
    mask = tf.constant([[1.0, 1, 1, 1], [1, 1, 0, 0]])
    shape = tf.TensorSpec([None, width, units])

    def equation(state, context, projected):
        energy = tf.tanh(projected + (state @ to_hidden)[:, tf.newaxis]) @ to_score
        shares = tf.exp(energy) * mask[..., tf.newaxis]
        return tf.reduce_sum(shares * context, 1) / tf.reduce_sum(shares, 1)

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), shape, shape])
    def gradients(*given):
        found = []
        for attend in (equation, lambda *each: layer.step(*each, mask)):
            with tf.GradientTape() as tape:
                tape.watch(given)
                cost = tf.reduce_sum(attend(*given) ** 3)
            found.append(tape.gradient(cost, [*given, to_hidden, to_score]))
        return found

    for expected, found in zip(*gradients(normal(2, 3), normal(2, 4, units), normal(2, 4, units)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_projection_normalises_after_the_bias():
    layer = Projection(3, 4, "layernorm", "projection")
    weights = fill(layer)
    x = normal(2, 5, 3)
    expected = layer_norm(x @ weights["kernel"] + weights["bias"], weights, "norm")
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)


def test_embedding_of_no_word_is_zero():
    layer = Embedding(5, 3, "embedding")
    table = fill(layer)["embeddings"]
    np.testing.assert_array_equal(layer(tf.constant([[4, -1]])), [[table[4], np.zeros(3)]])


class TestDropout:
    def test_mask_keeps_the_mean(self):
        mask = DropoutMasks(SEED).draw(0.25, [200, 200]).numpy()
        np.testing.assert_allclose(np.unique(mask), [0, 1 / 0.75])
        # Four standard deviations of the share kept, over 40,000 draws.
        np.testing.assert_allclose((mask > 0).mean(), 0.75, atol=4 * np.sqrt(0.75 * 0.25 / 40_000))

    def test_same_seed_same_masks_and_each_its_own(self):
        one, other = DropoutMasks(SEED), DropoutMasks(SEED)
        first, second = one.draw(0.5, [8, 8]), one.draw(0.5, [8, 8])
        np.testing.assert_array_equal(first, other.draw(0.5, [8, 8]))
        assert (first != second).numpy().any()
        assert (first != DropoutMasks(tf.constant([1, 3])).draw(0.5, [8, 8])).numpy().any()

    def test_off(self):
        assert DropoutMasks(None).draw(0.5, [8, 8]) is None
        assert DropoutMasks(SEED).draw(0.0, [8, 8]) is None
        x = tf.ones([2, 3])
        assert drop(x, None) is x

    def test_one_mask_serves_all_time_steps(self):
        mask = tf.constant([[0.0, 2.0], [2.0, 0.0]])
        dropped = drop(tf.ones([2, 3, 2]), mask)
        np.testing.assert_array_equal(dropped, np.repeat(mask.numpy()[:, None], 3, 1))


@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (32, 24)])
def test_square_matrices_start_orthogonal_and_others_small(rows, columns):
    kernel = Projection(rows, columns, "none", "projection").kernel.numpy()
    if rows == columns:
        np.testing.assert_allclose(kernel.T @ kernel, np.eye(rows), atol=1e-5)
    else:
        np.testing.assert_allclose(kernel.std(), 0.01, rtol=0.15)


def test_gates_start_as_two_independent_blocks():
    layer = GRUStep(5, 6, "none", name="gru")
    blocks = np.split(layer.state_to_gates.numpy(), 2, axis=1)
    for block in blocks:
        np.testing.assert_allclose(block.T @ block, np.eye(6), atol=1e-5)
    assert np.abs(blocks[0] - blocks[1]).max() > 0.1
