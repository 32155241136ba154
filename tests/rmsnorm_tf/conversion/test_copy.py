"""The copy of a model that a conversion changes."""

import keras
import numpy as np

from rmsnorm_tf import fold_layer_norm, replace_layer_norm
from tests.folding import layers, with_drawn_weights


@keras.saving.register_keras_serializable(package="copy")
class Stem(layers.Layer):
    """Its layers have automatic names."""

    def build(self, shape):
        self.statistics, self.map, self.norm = layers.BatchNormalization(), layers.Dense(6), layers.LayerNormalization()
        for layer in (self.statistics, self.map, self.norm):
            layer.build(shape)

    def call(self, x):
        return self.norm(self.map(self.statistics(x)))


def test_layers_inside_a_layer_keep_their_names_and_what_is_frozen():
    x = keras.Input((4, 6))
    model = with_drawn_weights(keras.Model(x, Stem(name="stem")(x)))
    stem = model.get_layer("stem")
    stem.statistics.trainable = False
    folded, [entry] = fold_layer_norm(model)
    assert entry.name == f"stem/{stem.norm.name}"
    for converted in (folded, replace_layer_norm(model)[0]):
        inner = converted.get_layer("stem")
        assert [inner.statistics.trainable, inner.map.trainable] == [False, True]
        assert inner.map.name == stem.map.name
    data = np.random.default_rng(0).normal(5.0, 1.0, (8, 4, 6))
    np.testing.assert_allclose(folded(data, training=True), model(data, training=True), atol=1e-4)
