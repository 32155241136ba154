"""What a backend without gradients computes, computed by TensorFlow."""

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf.norm import portable
from rmsnorm_tf.norm.arguments import NormInputs, resolve
from rmsnorm_tf.norm.backend import compute
from tests.cases import assert_close


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(
    "arguments", [(-1, None, None), (1, (1, 2), 0.4), ((1, 3), -1, None)], ids=str
)
def test_values(arguments, dtype):
    shape = (2, 5, 4, 3)
    spec = resolve(shape, *arguments, epsilon=1e-6, groups=1)
    rng = np.random.default_rng(0)
    x, gate = tf.cast(rng.normal(size=(2, *shape)), dtype)
    wide = "float64" if dtype == "float64" else "float32"
    t = NormInputs(x, gate, *tf.cast(rng.normal(size=(2, *spec.scale_shape(shape))), wide))
    ours, theirs = (function(spec, t, False) for function in (portable.compute, compute))
    assert ours.dtype == theirs.dtype
    assert_close(ours, theirs, dtype, factor=10)
