"""The GRU against its equations in NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.model.forward_pass import ForwardPass
from nmt.model.gru import GRUMasks, GRUStep
from nmt.normalization import Normalization
from tests.reference import sigmoid

from .blocks import fill, layer_norm, normal


def gru(x, h, weights, norm, bias_on_state):
    """One step of the GRU, as its docstring has it."""
    gates_bias = weights["gates_bias"]
    proposal_bias = weights["proposal_bias"]
    input_biases = (0, 0) if bias_on_state else (gates_bias, proposal_bias)
    state_biases = (gates_bias, proposal_bias) if bias_on_state else (0, 0)
    gates = norm(x @ weights["input_to_gates"] + input_biases[0], weights, "gates_x_norm")
    gates = gates + norm(
        h @ weights["state_to_gates"] + state_biases[0], weights, "gates_state_norm"
    )
    reset, update = np.split(sigmoid(gates), 2, axis=-1)
    proposal = norm(
        h @ weights["state_to_proposal"] + state_biases[1], weights, "proposal_state_norm"
    )
    candidate = np.tanh(
        norm(x @ weights["input_to_proposal"] + input_biases[1], weights, "proposal_x_norm")
        + reset * proposal
    )
    return update * h + (1 - update) * candidate


@pytest.mark.parametrize("bias_on_state", [False, True])
@pytest.mark.parametrize(
    ("kind", "norm"), [("none", lambda x, weights, name: x), ("layernorm", layer_norm)]
)
def test_gru_step(kind, norm, bias_on_state):
    layer = GRUStep(3, 4, Normalization(kind), bias_on_state=bias_on_state, name="gru")
    weights = fill(layer)
    x = normal(2, 3)
    h = normal(2, 4)
    np.testing.assert_allclose(
        layer.step(h, layer.project_input(x)),
        gru(x, h, weights, norm, bias_on_state),
        rtol=1e-5,
        atol=1e-6,
    )


def test_gru_projects_all_time_steps_at_once(kind):
    layer = GRUStep(3, 4, Normalization(kind), name="gru")
    fill(layer)
    x = normal(2, 5, 3)
    for at_once, step_by_step in zip(
        layer.project_input(x),
        zip(*(layer.project_input(x[:, t]) for t in range(5)), strict=True),
        strict=True,
    ):
        np.testing.assert_allclose(at_once, np.stack(step_by_step, 1), rtol=1e-5, atol=1e-6)


def test_gru_masks_each_projection_on_its_own():
    """A mask of zeros for one projection removes exactly its contribution."""
    layer = GRUStep(3, 4, Normalization("none"), name="gru")
    weights = fill(layer)
    x = normal(2, 3)
    h = normal(2, 4)
    matrices = {
        "input_to_gates": 3,
        "input_to_proposal": 3,
        "state_to_gates": 4,
        "state_to_proposal": 4,
    }
    assert [
        each.shape[1] for each in layer.masks(ForwardPass(tf.constant([1, 2])), 2, 0.5, 0.5)[:4]
    ] == [*matrices.values()]
    for name, units in matrices.items():
        masks = GRUMasks(**{name: tf.zeros([2, units])})
        expected = gru(
            x,
            h,
            {**weights, name: np.zeros_like(weights[name])},
            lambda x, weights, name: x,
            False,
        )
        np.testing.assert_allclose(
            layer.step(h, layer.project_input(x, masks), masks), expected, rtol=1e-5, atol=1e-6
        )


def test_gates_start_as_two_independent_blocks():
    layer = GRUStep(5, 6, Normalization("none"), name="gru")
    blocks = np.split(layer.state_to_gates.numpy(), 2, axis=1)
    for block in blocks:
        np.testing.assert_allclose(block.T @ block, np.eye(6), atol=1e-5)
    assert np.abs(blocks[0] - blocks[1]).max() > 0.1
