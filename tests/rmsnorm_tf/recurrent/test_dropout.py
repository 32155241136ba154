"""Which entries dropout in recurrent layers and cells drops."""

import keras
import numpy as np
import pytest
from keras import ops

from rmsnorm_tf import RMSNormGRU, RMSNormGRUCell, RMSNormLSTMCell, RMSNormSimpleRNNCell
from tests.backends import to_array
from tests.transcription import TIME


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_mask_on_the_inputs_is_drawn_once_for_each_sequence(wrapped):
    gru = RMSNormGRU(64, normalization=None, dropout=0.25, return_sequences=True)
    if not wrapped:
        gru = keras.layers.RNN(
            RMSNormGRUCell(64, normalization=None, dropout=0.25), return_sequences=True
        )
    gru.build((None, TIME, 64))
    # h' = tanh(x): no state, z = 0, one input for each unit.
    bias = np.zeros((2, 192))
    bias[0, :64] = -100
    gru.set_weights([np.hstack([np.zeros((64, 128)), np.eye(64)]), np.zeros((64, 192)), bias])
    x = np.ones((32, TIME, 64), np.float32)
    masks = [np.arctanh(to_array(gru(x, training=True))) for _ in range(2)]
    for mask in masks:
        np.testing.assert_allclose(mask, np.broadcast_to(mask[:, :1], mask.shape), rtol=1e-5)
        np.testing.assert_allclose(np.unique(mask.round(4)), [0, 1.3333])
        assert 0.2 < np.mean(mask[:, 0] == 0) < 0.3
    assert np.any(masks[0] != masks[1])
    assert np.any(masks[0][0] != masks[0][1])
    np.testing.assert_allclose(to_array(gru(x, training=False)), np.tanh(x), rtol=1e-5)


def test_a_mask_on_the_state_is_drawn_once_for_each_sequence():
    rnn = keras.layers.RNN(
        RMSNormSimpleRNNCell(64, normalization=None, recurrent_dropout=0.25, activation=None),
        return_sequences=True,
    )
    rnn.build((None, 3, 1))
    rnn.set_weights([np.ones((1, 64)), np.eye(64), np.zeros(64)])
    x = np.ones((8, 3, 1), np.float32)
    first, other = (to_array(rnn(x, training=True)) for _ in range(2))
    mask = first[:, 1] - 1  # h_2 = 1 + mask * h_1
    np.testing.assert_allclose(np.unique(mask.round(4)), [0, 1.3333])
    np.testing.assert_allclose(first[:, 2], 1 + mask * (1 + mask), rtol=1e-5)
    assert np.any(first != other)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# The blocks of the recurrent kernel that are the identity, the biases of all blocks, and the new
# state for a dropped or doubled old state of ones.
DROPPED = {
    "update": (RMSNormGRUCell, {}, "z", {}, sigmoid),
    "reset": (
        RMSNormGRUCell,
        {},
        "r",
        {"z": -100, "recurrent h": 1},
        lambda m: np.tanh(sigmoid(m)),
    ),
    "proposal": (RMSNormGRUCell, {}, "h", {"z": -100, "r": 100}, np.tanh),
    "update-first": (RMSNormGRUCell, {"reset_after": False}, "z", {}, sigmoid),
    "reset-first": (
        RMSNormGRUCell,
        {"reset_after": False},
        "rh",
        {"z": -100},
        lambda m: np.tanh(m * sigmoid(m)),
    ),
    "input": (RMSNormLSTMCell, {}, "i", {"c": 100, "o": 100}, lambda m: np.tanh(sigmoid(m))),
    "output": (RMSNormLSTMCell, {}, "o", {"c": 100, "i": 100}, lambda m: sigmoid(m) * np.tanh(1)),
}


@pytest.mark.parametrize(
    ("cell_class", "options", "blocks", "biases", "outcome"), DROPPED.values(), ids=DROPPED
)
def test_a_mask_on_the_state_reaches_every_gate(cell_class, options, blocks, biases, outcome):
    units = 64
    cell = (
        cell_class(
            units, normalization=None, recurrent_dropout=0.5, unit_forget_bias=False, **options
        )
        if (cell_class is RMSNormLSTMCell)
        else cell_class(units, normalization=None, recurrent_dropout=0.5, **options)
    )
    cell.build((None, 1))
    names = "ifco" if cell_class is RMSNormLSTMCell else "zrh"
    identity = np.eye(units)
    zeros = np.zeros((units, units))
    bias = np.zeros(cell.bias.shape)
    for name, value in biases.items():
        row = bias[int("recurrent" in name)] if bias.ndim == 2 else bias
        row.reshape(len(names), units)[names.index(name[-1])] = value
    cell.kernel.assign(np.zeros(cell.kernel.shape))
    cell.recurrent_kernel.assign(
        np.hstack([identity if name in blocks else zeros for name in names])
    )
    cell.bias.assign(bias)
    states = [ops.ones((8, units)), ops.zeros((8, units))][: len(cell.get_initial_state(8))]
    h, _ = cell(ops.zeros((8, 1)), states, training=True)
    dropped = np.isclose(to_array(h), outcome(0.0), atol=1e-4)
    assert dropped.shape == (8, units)
    np.testing.assert_allclose(to_array(h)[~dropped], outcome(2.0), atol=1e-4)
    assert 0.3 < dropped.mean() < 0.7
    assert len(np.unique(dropped, axis=0)) == 8  # each row has a mask of its own
    h, _ = cell(ops.zeros((8, 1)), states, training=False)
    np.testing.assert_allclose(to_array(h), np.full(h.shape, outcome(1.0)), atol=1e-4)
