import keras
import numpy as np
import pytest
import tensorflow as tf

from experiments.translation.inside.weight_normalized import WeightNormalized, weight_normalization
from nmt.model.rnnsearch import RNNSearch
from nmt.model.rnnsearch_layers import Rates

WORDS = tf.constant([[2, 5, 3, 0], [4, 0, 0, 0]], tf.int32)
MASK = tf.constant([[1, 1, 1, 1], [1, 1, 0, 0]], tf.float32)


def build():
    keras.utils.set_random_seed(1)
    return RNNSearch(7, 7, embedding_size=3, state_size=4, normalization="none", rates=Rates())


def cost(model):
    return model.total_cost(WORDS, MASK, WORDS, MASK, label_smoothing=0.0, dropout_seed=None)


@pytest.fixture
def model():
    with weight_normalization():
        return build()


@pytest.fixture
def variables(model):
    """The directions and their gains, by the path of the direction."""
    found = {variable.path: variable for variable in model.trainable_variables}
    return {path: (found[path], found[f"{path}_gain"]) for path in found if f"{path}_gain" in found}


def test_the_model_begins_as_without_weight_normalization(model):
    np.testing.assert_allclose(cost(model), cost(build()), rtol=1e-6)


def test_matrices_but_embeddings_are_normalized(model, variables):
    matrices = [variable.path for variable in model.trainable_variables if len(variable.shape) == 2]
    plain = [path for path in matrices if path not in variables]
    assert sorted(path.rpartition("/")[2] for path in plain) == ["embeddings", "embeddings", "output_kernel"]


def test_only_the_direction_of_a_column_matters(model, variables):
    before = cost(model)
    for direction, _ in variables.values():
        direction.assign(direction * np.linspace(0.5, 3, direction.shape[1], dtype=np.float32))
    np.testing.assert_allclose(cost(model), before, rtol=1e-5)


def test_gradients_are_orthogonal_to_the_columns_and_reach_the_gains(model, variables):
    pairs = list(variables.values())
    with tf.GradientTape() as tape:
        found = cost(model)
    gradients = tape.gradient(found, [[direction.value, gain.value] for direction, gain in pairs])
    for (direction, _), (of_direction, of_gain) in zip(pairs, gradients, strict=True):
        along = np.sum(np.asarray(of_direction) * np.asarray(direction), 0)
        size = np.linalg.norm(of_direction, axis=0) * np.linalg.norm(direction, axis=0)
        np.testing.assert_allclose(along, 0, atol=1e-5 * max(size.max(), 1e-3))
        assert np.isfinite(of_gain).all()
    assert any(np.abs(of_gain).max() > 1e-6 for _, of_gain in gradients)


def test_a_matrix_has_the_norms_of_its_gains():
    matrix = WeightNormalized(keras.Variable([[3.0, 0.0], [4.0, 2.0]]), keras.Variable([10.0, 1.0]))
    np.testing.assert_allclose(tf.convert_to_tensor(matrix), [[6, 0], [8, 1]], rtol=1e-6)
