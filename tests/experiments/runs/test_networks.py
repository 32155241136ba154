import keras
import numpy as np
import pytest

from experiments.data_sets.arrays import Labelled, Parts
from experiments.runs.networks import ImageClassifiers, compile_classifier, in_batches
from tests.experiments.runs.conftest import Signs, build


class Constant(ImageClassifiers):
    """One network, which gives class 1 the probability 0.8, whatever its input."""

    validated = 4

    def build(self, run):
        inputs = keras.Input((1,))
        model = keras.Model(inputs, keras.layers.Dense(2, name="logits")(inputs))
        model.get_layer("logits").set_weights([np.zeros((1, 2)), np.log([0.2, 0.8])])
        return compile_classifier(model, keras.optimizers.Adam())

    def mean_shares(self, model):
        return {}


def test_loss_and_error_of_each_part():
    parts = [
        Labelled(np.zeros((len(classes), 1)), np.array(classes))
        for classes in ([1], [1, 1, 1, 0], [1, 1])
    ]
    networks = Constant(Parts(*parts))
    assert networks.validate(networks.build(None)) == {
        "nll": pytest.approx(-(3 * np.log(0.8) + np.log(0.2)) / 4, rel=1e-5),
        "error": pytest.approx(25),
        "test_nll": pytest.approx(-np.log(0.8), rel=1e-5),
        "test_error": pytest.approx(0),
    }


def test_without_a_test_part_only_the_validation_part_is_measured():
    assert Signs().validate(build()).keys() == {"nll"}


def test_batches_hold_all_examples_in_order():
    inputs = np.arange(10).reshape(5, 2)
    targets = np.arange(5)
    batches = list(in_batches(inputs, targets, batch_size=2).as_numpy_iterator())
    assert [len(each) for _, each in batches] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate([each for each, _ in batches]), inputs)
    np.testing.assert_array_equal(np.concatenate([each for _, each in batches]), targets)


def test_a_model_predicts_the_same_from_arrays():
    one = keras.Input((3,))
    other = keras.Input((3,))
    model = keras.Model([one, other], keras.layers.Dense(2)(one - 2 * other))
    inputs = list(np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32))
    expected = model.predict(inputs, batch_size=2, verbose=0)
    np.testing.assert_allclose(
        model.predict(in_batches(inputs, batch_size=2), verbose=0), expected, rtol=1e-6
    )
