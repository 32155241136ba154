"""Eager calls where no other thread of TensorFlow runs: they do not hang."""

import numpy as np
import pytest

from tests.cases import assert_close

IN_A_FORKED_CHILD = """
import os, sys
import tensorflow as tf
from rmsnorm_tf import rms_norm

def normalize():
    x = tf.ones((8, 64))  # on large tensors TensorFlow itself may hang
    for fused in (None, True):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = rms_norm(x, fused=fused)
            dx = tape.gradient(y, x)
        outer.gradient(dx, x)
    return float(y[0, 0])

if "before" in sys.argv:
    normalize()
else:
    tf.ones(3)
child = os.fork()
if child == 0:
    print("child", normalize(), flush=True)
    os._exit(0)
sys.exit(os.waitpid(child, 0)[1])
"""

IN_A_PY_FUNCTION = """
import sys
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
from rmsnorm_tf import rms_norm

def normalize(x):
    for fused in (None, True):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rms_norm(x, fused=fused)
        tape.gradient(y, x)
    return y

if "before" in sys.argv:
    normalize(tf.ones((80, 1024)))
call = tf.function(lambda x: tf.py_function(normalize, [x], tf.float32))
print("graph", float(call(tf.ones((80, 1024)))[0, 0]))
data = tf.data.Dataset.from_tensors(tf.ones((80, 1024)))
[y] = data.map(lambda x: tf.py_function(normalize, [x], tf.float32))
print("data", float(y[0, 0]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (IN_A_FORKED_CHILD, ["child"]),
        (IN_A_PY_FUNCTION, ["graph", "data"]),
    ],
)
def test_eager_calls_do_not_hang(script, expected, when, run_python):
    """Where no other thread of TensorFlow runs; `run_python` ends after a time limit."""
    result = run_python(script, when)
    assert result.returncode == 0, result.stderr
    values = dict(line.split() for line in result.stdout.splitlines())
    assert list(values) == expected
    assert_close([float(value) for value in values.values()], np.ones(len(expected)))
