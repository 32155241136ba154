"""Keras's own tests of its layers, run on ours.

The wheel of Keras has them. docs/from-other-layers.md lists what differs by intention.
"""

from typing import Any

import keras
import pytest

from rmsnorm_tf import RMSNormalization, RMSNormGRU, RMSNormLSTM

testing = pytest.importorskip("keras.src.testing", reason="Keras lacks its test cases")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@keras.saving.register_keras_serializable(package="tests")
class LayerNormalization(RMSNormalization):
    """Takes the arguments of `keras.layers.LayerNormalization`."""

    def __init__(self, axis=-1, epsilon=1e-3, center=True, rms_scaling=False, **kwargs):
        renamed = {
            key.replace("gamma", "scale").replace("beta", "offset"): value
            for key, value in kwargs.items()
        }
        super().__init__(axis, epsilon, center=center and not rms_scaling, **renamed)

    @property
    def gamma(self):
        return self.scale


@keras.saving.register_keras_serializable(package="tests")
class GRU(RMSNormGRU):
    """Normalizes nothing by default, so its values are those of `keras.layers.GRU`."""

    def __init__(self, *arguments, normalization=None, **kwargs):
        super().__init__(*arguments, normalization=normalization, **kwargs)


@keras.saving.register_keras_serializable(package="tests")
class LSTM(RMSNormLSTM):
    """Normalizes nothing by default, so its values are those of `keras.layers.LSTM`."""

    def __init__(self, *arguments, normalization=None, **kwargs):
        super().__init__(*arguments, normalization=normalization, **kwargs)


class _Layers:
    """Keras's layers with ours in their place."""

    RMSNormalization = RMSNormalization
    LayerNormalization = LayerNormalization
    GRU = GRU
    LSTM = LSTM

    def __getattr__(self, name: str) -> Any:
        return getattr(keras.layers, name)


def adopt(path: str, differs: tuple[str, ...] = ()) -> type:
    """Returns Keras's test case, which then makes our layers, without tests of what differs."""
    module = pytest.importorskip(f"keras.src.layers.{path}_test", reason="Keras lacks its tests")
    module.layers = _Layers()
    [case] = [each for name, each in vars(module).items() if name.endswith("Test")]
    # Keras 3.12, of Python 3.10, has not all of them yet.
    assert keras.__version__ < "3.15" or all(hasattr(case, name) for name in differs)
    return type(case.__name__, (case,), {"__module__": __name__, **dict.fromkeys(differs)})


RMSNormalizationTest = adopt("normalization.rms_normalization")
LayerNormalizationTest = adopt(
    "normalization.layer_normalization",
    ("test_invalid_axis", "test_correctness", "test_output", "test_output_with_rms_scaling"),
)
GRUTest = pytest.mark.slow(adopt("rnn.gru", ("test_torch_cudnn_dispatch_fires",)))
LSTMTest = pytest.mark.slow(adopt("rnn.lstm"))


class NormalizedTest(testing.TestCase):
    """The general test of a layer, with norms inside."""

    @pytest.mark.slow
    def test_recurrent_layers(self):
        for layer, weights in ((RMSNormGRU, 7), (RMSNormLSTM, 7)):
            self.run_layer_test(
                layer,
                init_kwargs={"units": 3, "dropout": 0.5, "recurrent_dropout": 0.5},
                input_shape=(3, 2, 4),
                call_kwargs={"training": True},
                expected_output_shape=(3, 3),
                expected_num_trainable_weights=weights,
                supports_masking=True,
            )

    def test_every_option_of_the_norm(self):
        self.run_layer_test(
            RMSNormalization,
            init_kwargs={
                "center": True,
                "partial": 0.5,
                "groups": 2,
                "zero_centered_scale": True,
                "scale_regularizer": "l2",
            },
            input_shape=(3, 4, 8),
            expected_output_shape=(3, 4, 8),
            expected_num_trainable_weights=2,
            expected_num_losses=1,
            supports_masking=True,
        )
