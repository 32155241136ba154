"""Conversion of subclassed models, which are traced on the shapes that they were built for."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import RMSNormalization, fold_layer_norm, replace_layer_norm, replace_rms_norm
from tests.backends import to_array
from tests.folding import dense, layers, with_drawn_weights


@keras.saving.register_keras_serializable(package="subclassed")
class Encoder(keras.Model):
    """A subclassed model with a layer inside, and operations of its own."""

    def __init__(self, make="LayerNormalization", **kwargs):
        super().__init__(**kwargs)
        self.make = make
        self.words = layers.Embedding(7, 6, name="words")
        self.norms = [getattr(layers, make)(name=f"norm_{i}") for i in range(2)]
        self.out = dense("out")

    def call(self, tokens, training=False):
        x = self.words(tokens)
        x = x + self.out(self.norms[0](x))
        return self.norms[1](x)

    def get_config(self):
        return {**super().get_config(), "make": self.make}


@pytest.mark.parametrize("convert", [fold_layer_norm, replace_rms_norm])
def test_a_subclassed_model_is_converted_and_saved(convert, tmp_path):
    model = Encoder(
        "LayerNormalization" if convert is fold_layer_norm else "RMSNormalization", name="encoder"
    )
    data = np.array([[1, 2, 3]])
    model(data)
    expected = to_array(with_drawn_weights(model)(data))
    report = convert(model)
    assert [entry.converted for entry in report.entries] == [True, True], report
    np.testing.assert_allclose(to_array(model(data)), expected, atol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.norms[1]) is RMSNormalization
    np.testing.assert_allclose(to_array(loaded(data)), expected, atol=1e-5)


@keras.saving.register_keras_serializable(package="subclassed")
class Gathers(Encoder):
    """A model that runs on integers alone."""

    def call(self, tokens):
        return super().call(keras.ops.where(keras.ops.bitwise_and(tokens, 1) == 1, tokens, 0))


@keras.saving.register_keras_serializable(package="subclassed")
class KnowsItsShape(Gathers):
    def compute_output_shape(self, shape):
        return (*shape, 6)


class Fails(Encoder):
    """A model that needs the size of the batch."""

    def call(self, tokens):
        if tokens.shape[0] is None:
            raise RuntimeError("The size of the batch is unknown.")
        return super().call(tokens)


def test_a_subclassed_model_may_take_integers_alone_and_must_be_traced():
    gathers = Gathers(name="gathers")
    knows = KnowsItsShape(name="knows")
    fails = Fails(name="fails")
    for model in (gathers, knows, fails):
        model(np.array([[1, 2, 3]]))
    for model in (gathers, knows):
        assert [entry.converted for entry in fold_layer_norm(model).entries] == [True, True]
    with pytest.raises(ValueError, match=r"'fails' .*\(1, 3\): "):
        fold_layer_norm(fails)
    assert [entry.converted for entry in replace_layer_norm(fails).entries] == [True, True]
