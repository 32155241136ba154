import keras
import numpy as np
import pytest

from experiments.data_sets.arrays import Labelled, Parts
from experiments.trials.networks import ImageClassifiers, compile_classifier
from tests.experiments.trials.conftest import Signs, build


class Constant(ImageClassifiers):
    """One network, which gives class 1 the probability 0.8, whatever its input."""

    def build(self, trial):
        inputs = keras.Input((1,))
        model = keras.Model(inputs, keras.layers.Dense(2, name="logits")(inputs))
        model.get_layer("logits").set_weights([np.zeros((1, 2)), np.log([0.2, 0.8])])
        return compile_classifier(model, keras.optimizers.Adam())

    def mean_shares(self, model):
        return {}


def test_loss_and_error_of_each_part():
    parts = [Labelled(np.zeros((len(classes), 1)), np.array(classes)) for classes in ([1], [1, 1, 1, 0], [1, 1])]
    networks = Constant(Parts(*parts), validated=4)
    assert networks.validate(networks.build(None)) == {
        "nll": pytest.approx(-(3 * np.log(0.8) + np.log(0.2)) / 4, rel=1e-5),
        "error": pytest.approx(25),
        "test_nll": pytest.approx(-np.log(0.8), rel=1e-5),
        "test_error": pytest.approx(0),
    }


def test_without_a_test_part_only_the_validation_part_is_measured():
    assert Signs().validate(build()).keys() == {"nll"}
