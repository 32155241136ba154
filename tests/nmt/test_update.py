"""One update: what it changes, and in which precision."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from nmt.config import make_config
from nmt.data import Batch
from nmt.update import Update

FILES = dict.fromkeys(("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset"), "-")
IDS = tf.constant([[2, 3, 4, 0], [5, 2, 0, 0]])
MASK = tf.constant([[1.0, 1, 1, 1], [1, 1, 1, 0]])
BATCH = Batch(IDS, MASK, IDS, MASK)


@pytest.fixture
def make_update(make_model):
    """Makes the updates of a model, and returns them with the model."""

    def make(kind="layernorm", **options):
        keras.utils.set_random_seed(1)
        model = make_model(kind)
        return Update(model, make_config({**FILES, "dictionaries": ["-", "-"], **options})), model

    return make


def test_returns_loss_tokens_and_norm(make_update, kind):
    update, model = make_update(kind)
    expected = float(tf.reduce_sum(model.costs(*BATCH)))
    loss, tokens, norm = update(BATCH, 1)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert tokens == 7
    assert norm > 0


def test_bfloat16_changes_only_the_products(make_update):
    """Eight bits of each factor are left; the weights, and what is done with them, stay float32."""
    results = {}
    for dtype in ("float32", "mixed_bfloat16"):
        update, model = make_update(dtype=dtype, learning_rate=0.01)
        results[dtype] = [update(BATCH, number)[0] for number in range(1, 6)]
        assert all(variable.dtype == "float32" for variable in model.variables)
    np.testing.assert_allclose(results["mixed_bfloat16"], results["float32"], rtol=0.01)
    assert results["mixed_bfloat16"] != results["float32"]
    assert results["float32"][-1] < results["float32"][0]
