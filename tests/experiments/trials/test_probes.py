import keras
import numpy as np
import pytest

from experiments.trials.probes import gain_rms, mean_share
from tests.experiments.trials.conftest import ROWS, build


def test_the_share_of_the_mean_follows_its_definition():
    model = build()
    inputs = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    kernel, bias = model.get_layer("sums").get_weights()
    sums = inputs @ kernel + bias
    expected = np.mean(sums.mean(1) ** 2) / np.mean(sums**2)
    assert mean_share(model, ["sums"], inputs) == {"sums": pytest.approx(expected, rel=1e-5)}


@pytest.mark.parametrize(("kernel", "share"), [([1.0, 1.0], 1), ([1.0, -1.0], 0), ([1.0, 0.0], 0.5)])
def test_the_share_is_one_for_equal_entries_and_zero_for_centred_ones(kernel, share):
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(2, use_bias=False, name="sums")(inputs))
    model.set_weights([np.array([kernel])])
    assert mean_share(model, ["sums"], np.ones((3, 1), np.float32))["sums"] == pytest.approx(share)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_gains_are_found_by_layer(row):
    model = build(row)
    assert gain_rms(model) == {"norm": 1.0}
    gain = model.get_layer("norm").weights[0]
    gain.assign([3.0, 4.0] * 4)
    assert gain_rms(model) == {"norm": pytest.approx(12.5**0.5)}
