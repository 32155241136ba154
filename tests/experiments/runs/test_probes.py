import keras
import numpy as np
import pytest

from experiments.runs.probes import gru_shares, lstm_shares, mean_share
from rmsnorm_tf import RMSNormGRUCell, RMSNormLSTMCell
from tests.experiments.runs.conftest import build


def test_the_share_of_the_mean_follows_its_definition():
    model = build()
    inputs = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    kernel, bias = model.get_layer("sums").get_weights()
    sums = inputs @ kernel + bias
    expected = np.mean(sums.mean(1) ** 2) / np.mean(sums**2)
    assert mean_share(model, ["sums"], inputs) == {"sums": pytest.approx(expected, rel=1e-5)}


@pytest.mark.parametrize(
    ("kernel", "share"), [([1.0, 1.0], 1), ([1.0, -1.0], 0), ([1.0, 0.0], 0.5)]
)
def test_the_share_is_one_for_equal_entries_and_zero_for_centred_ones(kernel, share):
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(2, use_bias=False, name="sums")(inputs))
    model.set_weights([np.array([kernel])])
    assert mean_share(model, ["sums"], np.ones((3, 1), np.float32))["sums"] == pytest.approx(share)


def test_the_share_can_run_over_other_axes():
    inputs = keras.Input((2, 2, 1))
    model = keras.Model(inputs, keras.layers.Conv2D(1, 1, name="sums", use_bias=False)(inputs))
    model.set_weights([np.ones((1, 1, 1, 1))])
    images = np.array([1.0, 1.0, 1.0, -1.0], np.float32).reshape(1, 2, 2, 1)
    assert mean_share(model, ["sums"], images, axis=(1, 2))["sums"] == pytest.approx(0.25)
    assert mean_share(model, ["sums"], images)["sums"] == pytest.approx(1)


def test_the_shares_of_a_gru_are_those_of_its_products_at_the_steps_that_are_not_masked():
    """The reference runs the cell step by step and keeps the state where the mask is false."""
    cell = RMSNormGRUCell(4)
    inputs = np.random.default_rng(0).normal(size=(3, 5, 2)).astype(np.float32)
    mask = np.arange(5) < np.array([[5], [3], [1]])
    cell.build((None, 2))
    found = gru_shares(cell, keras.ops.convert_to_tensor(inputs), mask)
    products = {"input": [], "state": []}
    state = np.zeros((3, 4), np.float32)
    for step in range(5):
        seen = mask[:, step]
        products["input"] += [inputs[seen, step] @ cell.kernel.numpy()]
        products["state"] += [state[seen] @ cell.recurrent_kernel.numpy()]
        after = cell(inputs[:, step], [keras.ops.convert_to_tensor(state)])[0].numpy()
        state = np.where(seen[:, None], after, state)
    for what, parts in products.items():
        gates, proposal = np.split(np.concatenate(parts), [8], axis=-1)
        for name, block in (("gates", gates), ("proposal", proposal)):
            expected = np.mean(block.mean(-1) ** 2) / np.mean(block**2)
            assert found[f"{what}_{name}"] == pytest.approx(expected, rel=1e-4)


def test_the_shares_of_an_lstm_are_those_of_its_products_and_of_its_cell_state():
    """The weights make every sum of a row equal.

    Only the cell state, of two steps, remains to compute.
    """
    cell = RMSNormLSTMCell(2, normalization=None)
    cell.build((None, 1))
    cell.kernel.assign(np.ones((1, 8)))
    cell.recurrent_kernel.assign(np.tile([1.0, -1.0], (2, 4)))
    cell.bias.assign(np.zeros(8))
    found = lstm_shares(cell, keras.ops.ones((1, 2, 1)))
    assert (found["input"], found["state"]) == (pytest.approx(1), pytest.approx(0, abs=1e-12))
    first = sigmoid(1) * np.tanh(1)
    state = 2 * sigmoid(1) * np.tanh(first)  # both entries are equal
    sums = 1 + state * np.array([1, -1])  # of each gate
    second = sigmoid(sums) * first + sigmoid(sums) * np.tanh(sums)
    carry = np.array([[first, first], second])
    assert found["carry"] == pytest.approx(
        np.mean(carry.mean(1) ** 2) / np.mean(carry**2), rel=1e-5
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))
