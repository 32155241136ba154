"""What the other backends compute, computed by TensorFlow: `make test-backends` runs it on them."""

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf.norm import portable
from rmsnorm_tf.norm.arguments import Tensors, resolve
from rmsnorm_tf.norm.backend import compute
from tests.backends import gradients
from tests.cases import assert_close

ARGUMENTS = [
    {},
    {"axis": 1, "scale_axis": (1, 2), "partial": 0.4},
    {"axis": (2, 3)},
    {"axis": (1, 3), "scale_axis": -1},
]


@pytest.mark.parametrize("has_scale", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_values_and_gradients(arguments, dtype, has_scale):
    shape = (2, 5, 4, 3)
    arguments = {"axis": -1, "scale_axis": None, "partial": None, "epsilon": 1e-6, "groups": 1, **arguments}
    spec = resolve(shape, **arguments)
    rng = np.random.default_rng(0)
    x, gate, dy = tf.cast(rng.normal(size=(3, *shape)), dtype)
    wide = "float64" if dtype == "float64" else "float32"
    weights = [tf.cast(w, wide) for w in rng.normal(size=(2, *spec.scale_shape(shape)))][1 - has_scale :]

    def of(function):
        def call(x, gate, *weights):
            scale = weights[0] if has_scale else None
            return function(spec, Tensors(x, gate, scale, weights[-1]), False)

        return [call(x, gate, *weights), *gradients(call, [x, gate, *weights], dy)]

    for ours, theirs in zip(of(portable.compute), of(compute), strict=True):
        assert ours.dtype == theirs.dtype
        assert_close(ours, theirs, dtype, factor=10)
