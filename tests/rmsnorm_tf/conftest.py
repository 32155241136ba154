"""Leaves files that need TensorFlow out elsewhere, skips by version, and sets a dtype policy."""

import re
from pathlib import Path

import keras
import pytest
from packaging.version import Version

if keras.backend.backend() != "tensorflow":
    needs_tensorflow = re.compile(
        r"^import tensorflow|^from benchmarks|\bfold\(|fold_layer_norm[(,]", re.MULTILINE
    )
    folder = Path(__file__).parent
    collect_ignore = [
        str(path.relative_to(folder))
        for path in folder.rglob("test_*.py")
        if needs_tensorflow.search(path.read_text(encoding="utf-8"))
    ]

# Tests that Keras 3.9 or TensorFlow 2.16 fail, by how their names begin.
BEYOND_THE_OLDEST = {
    "test_a_gain_of_bfloat16_is_taken_over": "NumPy reads no variable of bfloat16",
    "test_seeds_and_statistics_stay": "the global seed moves on",
    "test_a_model_with_an_optional_input": "optional inputs are cloned as required ones",
    "test_inputs_stay_as_they_are": "optional inputs are cloned as required ones",
    "test_norms_inside_layers_are_folded[float64-tied]": "there is no ReversibleEmbedding",
    "test_tied_weights_stay_tied": "there is no ReversibleEmbedding",
    "test_an_embedding_whose_weights_may_make_logits": "there is no ReversibleEmbedding",
    "test_rows_of_every_length[2-": "XLA's rsqrt is exact to 3e-6 only",
    "test_constant_rows": "XLA's rsqrt is exact to 3e-6 only",
    "test_a_layer_regularizes_its_output": "the regularizer is not divided by the batch",
    "test_a_layer_norm_that_cannot_be_folded_stays_with_a_reason[a layer as activation]": (
        "Keras does not load it"
    ),
    "test_the_config_of_a_layer_changed_inside": "XLA's rsqrt is exact to 3e-6 only",
    "test_tflite": "TFLite's interpreter crashes",
}


def pytest_collection_modifyitems(items):
    """Lets PyTorch's compiler warn of Keras, and skips what the oldest versions cannot do."""
    is_torch = keras.backend.backend() == "torch"
    is_old = Version(keras.__version__) < Version("3.12")
    for item in items:
        if is_torch:
            item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning"))
        for name, reason in BEYOND_THE_OLDEST.items() if is_old else ():
            if item.name.startswith(name):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(params=[pytest.param("float32", marks=pytest.mark.slow), "float64"])
def policy(request):
    """Sets the global dtype policy for one test, and returns its name."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)
