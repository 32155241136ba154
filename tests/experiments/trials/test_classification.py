import keras
import numpy as np
import pytest

from experiments.trials.classification import loss_and_error


def test_loss_and_error_of_each_part():
    """The network gives class 1 the probability 0.8, whatever its input."""
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(2, name="logits")(inputs))
    model.get_layer("logits").set_weights([np.zeros((1, 2)), np.log([0.2, 0.8])])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, metrics=["accuracy"])
    parts = {"": (np.zeros((4, 1)), np.array([1, 1, 1, 0])), "test_": (np.zeros((2, 1)), np.array([1, 1]))}
    assert loss_and_error(model, parts, batch_size=4) == {
        "nll": pytest.approx(-(3 * np.log(0.8) + np.log(0.2)) / 4, rel=1e-5),
        "error": pytest.approx(25),
        "test_nll": pytest.approx(-np.log(0.8), rel=1e-5),
        "test_error": pytest.approx(0),
    }
