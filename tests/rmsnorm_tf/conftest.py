"""What the tests of this package share: files that need TensorFlow stay out elsewhere, and a fixture."""

import re
from pathlib import Path

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    needs_tensorflow = re.compile(r"^import tensorflow|^from benchmarks|\bfold\(|fold_layer_norm\(", re.MULTILINE)
    folder = Path(__file__).parent
    collect_ignore = [
        str(path.relative_to(folder))
        for path in folder.rglob("test_*.py")
        if needs_tensorflow.search(path.read_text(encoding="utf-8"))
    ]


def pytest_collection_modifyitems(items):
    """Lets PyTorch's compiler warn of what it finds in Keras."""
    if keras.backend.backend() == "torch":
        for item in items:
            item.add_marker(pytest.mark.filterwarnings("ignore::UserWarning"))


@pytest.fixture(params=[pytest.param("float32", marks=pytest.mark.slow), "float64"])
def policy(request):
    """Sets the global dtype policy for one test, and returns its name."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy(before)
