"""Where the package can be imported, and what it says elsewhere."""

import keras
import pytest

import rmsnorm_tf
from tests.backends import BACKEND

on_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="for TensorFlow")
elsewhere = pytest.mark.skipif(BACKEND == "tensorflow", reason="for the other backends")


@pytest.mark.slow
@on_tensorflow
def test_keras_2_is_refused(run_python):
    result = run_python("import rmsnorm_tf", TF_USE_LEGACY_KERAS="1")
    assert result.returncode != 0
    assert "but TF_USE_LEGACY_KERAS makes" in result.stderr


@elsewhere
def test_no_other_backend_imports_tensorflow(run_python):
    result = run_python(
        "import sys, rmsnorm_tf; print('tensorflow' in sys.modules)", KERAS_BACKEND=BACKEND
    )
    assert result.stdout.strip() == "False", result.stderr


@elsewhere
def test_what_stays_with_tensorflow_says_so():
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(4), keras.layers.LayerNormalization()]
    )
    convert = rmsnorm_tf.fold_layer_norm
    with pytest.raises(
        RuntimeError,
        match=f"fold_layer_norm needs .* Keras runs on {BACKEND}",
    ):
        convert(model)
    with pytest.raises(RuntimeError, match="set_fused needs the TensorFlow"):
        rmsnorm_tf.set_fused(True)
