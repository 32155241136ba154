"""What is compiled and when, and that plain and compiled operations compute the same."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormalization, rms_norm, set_fused
from tests import reference
from tests.cases import assert_close
from tests.parameters import slow

LARGE = (64, 1024)
SMALL = (2, 8)


def compiled_calls(function, *specs):
    """Returns how many nested functions the graph of `function` calls."""
    graph = tf.function(function).get_concrete_function(*specs).graph
    return sum(operation.type == "PartitionedCall" for operation in graph.get_operations())


@pytest.mark.parametrize(
    ("shape", "choice", "calls"),
    [
        (LARGE, None, 1),
        (LARGE, False, 0),
        (SMALL, None, 0),
        (SMALL, True, 1),
        ((None, 1024), None, 0),
        ((4, None, 1024), None, 0),
        ((None, 1024), True, 1),
    ],
)
def test_choice_in_a_graph(shape, choice, calls):
    assert compiled_calls(lambda x: rms_norm(x, fused=choice), tf.TensorSpec(shape)) == calls


# XLA writes every program that it compiles into a folder.
EAGER_CALLS = """
import os, sys
from pathlib import Path
os.environ["XLA_FLAGS"] = f"--xla_dump_to={Path.cwd() / 'programs'} --xla_dump_hlo_as_text"
import tensorflow as tf
from rmsnorm_tf import rms_norm, set_fused

def compiled_by(shapes, **arguments):
    before = programs()
    for shape in shapes:
        rms_norm(tf.ones(shape), **arguments)
    return programs() - before

def programs():
    return len({path.name.split(".")[0] for path in Path("programs").glob("module_*")})

print("new and recurring:", [compiled_by([(2, 8)]) for _ in range(4)])
print("another equation:", compiled_by([(2, 8)], epsilon=0.5))
print("ever new lengths:", compiled_by([(length, 16) for length in range(1, 100)]))
print("on request:", compiled_by([(length, 4) for length in (1, 2, 3)] * 2, fused=True))
print("switched off:", end=" ")
set_fused(False)
print(compiled_by([(3, 24)] * 5), compiled_by([(4, 24)], fused=True))
set_fused(True)
print("switched on:", compiled_by([(5, 24)], fused=False))
set_fused(None)
"""
AT_MOST = """
print("at most:", compiled_by([(length, 12) for length in range(1, 41)] * 4))
"""


def test_eager_calls_compile_recurring_shapes(run_python):
    result = run_python(EAGER_CALLS)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "new and recurring: [0, 0, 1, 0]",
        "another equation: 0",
        "ever new lengths: 0",
        "on request: 3",
        "switched off: 0 0",
        "switched on: 1",
    ]


@pytest.mark.slow
def test_eager_calls_compile_up_to_a_limit(run_python):
    result = run_python(EAGER_CALLS + AT_MOST)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "at most: 31"  # 32 with the first one


@pytest.mark.parametrize(("variable", "calls"), [("0", (0, 0)), pytest.param("True", (1, 1), marks=pytest.mark.slow)])
def test_the_environment_variable_overrides_every_argument(variable, calls, run_python):
    script = """
import tensorflow as tf
from rmsnorm_tf import rms_norm
for choice in (False, True):
    graph = tf.function(lambda x: rms_norm(x, fused=choice)).get_concrete_function(tf.TensorSpec((2, 8))).graph
    print(sum(operation.type == "PartitionedCall" for operation in graph.get_operations()))
"""
    result = run_python(script, RMSNORM_TF_FUSED=variable)
    assert tuple(map(int, result.stdout.split())) == calls, result.stderr


@pytest.mark.slow
def test_an_environment_variable_that_says_neither(run_python):
    result = run_python("import rmsnorm_tf", RMSNORM_TF_FUSED="maybe")
    assert result.returncode != 0
    assert "The environment variable RMSNORM_TF_FUSED must be 0, 1 or empty, got 'maybe'." in result.stderr


def test_set_fused_overrides_every_argument_until_it_is_reset():
    specs = tf.TensorSpec(SMALL)

    def calls():
        return [compiled_calls(lambda x, c=choice: rms_norm(x, fused=c), specs) for choice in (False, None, True)]

    try:
        set_fused(False)
        assert calls() == [0, 0, 0]
        set_fused(True)
        assert calls() == [1, 1, 1]
    finally:
        set_fused(None)
    assert calls() == [0, 0, 1]
    with pytest.raises(ValueError, match="value must be one of True, False, None, got 'off'"):
        set_fused("off")


IN_A_FORKED_CHILD = """
import os, sys
import tensorflow as tf
from rmsnorm_tf import rms_norm

def normalize():
    x = tf.ones((80, 1024))
    for fused in (None, None, None, None, True):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rms_norm(x, fused=fused)
        tape.gradient(y, x)
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
    for fused in (None, None, None, None, True):
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


@pytest.mark.parametrize("when", ["before", *slow("after")])
@pytest.mark.parametrize(
    ("script", "expected"),
    [(IN_A_FORKED_CHILD, ["child"]), pytest.param(IN_A_PY_FUNCTION, ["graph", "data"], marks=pytest.mark.slow)],
)
def test_eager_calls_do_not_hang(script, expected, when, run_python):
    """Where no other thread of TensorFlow runs; `run_python` ends after a time limit."""
    result = run_python(script, when)
    assert result.returncode == 0, result.stderr
    values = dict(line.split() for line in result.stdout.splitlines())
    assert list(values) == expected
    assert_close([float(value) for value in values.values()], np.ones(len(expected)))


def test_variable_lengths_in_a_graph_trace_once():
    traces = []

    @tf.function(input_signature=[tf.TensorSpec((None, None, 1024))])
    def step(x):
        traces.append(x.shape)
        return rms_norm(x)

    for length in (20, 30, 40):
        step(tf.ones((2, length, 1024)))
    assert len(traces) == 1


def test_an_export_with_an_unknown_batch_calls_no_nested_function():
    layer = RMSNormalization()
    layer.build((None, 1024))
    assert compiled_calls(layer, tf.TensorSpec((None, 1024))) == 0


SHAPES = [(1024, 64), (16, 64), (1032, 24), (520, 20), (16, 33, 8), (1030, 64), (8, 9, 10, 16), (3, 6144)]


def assert_sums_agree(shapes):
    """Compares the sums of compiled passes, in these shapes and two dtypes, with plain ones in float64."""
    for shape in shapes:
        rng = np.random.default_rng(0)
        arrays = [*rng.normal(size=(2, *shape)), rng.normal(size=shape[-1])]
        expected = passes(*arrays, "float64", fused=False)
        for dtype in ("float32", "float64"):
            for a, e in zip(passes(*arrays, dtype, fused=True), expected, strict=True):
                assert_close(a, e, dtype, factor=10)


def passes(x, dy, scale, dtype, fused):
    """Returns y and the gradients."""
    sources = [tf.constant(a, dtype) for a in (x, scale)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = rms_norm(*sources, fused=fused)
    return [y, *tape.gradient(y, sources, tf.constant(dy, dtype))]


@pytest.mark.parametrize("shapes", [SHAPES[::3], *slow(SHAPES)], ids=["some", "all"])
def test_the_sums_written_for_a_cpu(shapes):
    assert_sums_agree(shapes)


@pytest.mark.slow
def test_the_sums_written_for_a_gpu(run_python):
    """Run on a CPU, in a process that believes that it has a GPU."""
    script = """
import sys
sys.path.insert(0, sys.argv[1])
import tensorflow as tf
tf.config.list_logical_devices = lambda kind=None: [tf.config.LogicalDevice("GPU:0", "GPU")]
from tests.rmsnorm_tf.norm.test_fused import SHAPES, assert_sums_agree
assert_sums_agree(SHAPES[::3])
print("agree")
"""
    result = run_python(script, Path(__file__).parents[3])
    assert result.stdout == "agree\n", result.stderr


def test_inside_a_loop_of_a_graph():
    x = tf.constant(np.random.default_rng(0).normal(size=(80, 256)))

    def run(choice):
        @tf.function
        def loop(x):
            return tf.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, rms_norm(h + x, fused=choice)), [0, x])[1]

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loop(x)
        return [y, tape.gradient(y, x)]

    h = x.numpy()
    for _ in range(5):
        h = reference.rms_norm(h + x.numpy())
    for choice in (None, False):
        assert_close(run(choice)[0], h, "float64", factor=5)
    assert_close(run(None)[1], run(False)[1], "float64", factor=20)


@pytest.mark.parametrize("choice", [False, True])
def test_a_scale_of_unknown_shape(choice):
    @tf.function(input_signature=[tf.TensorSpec((2, 8)), tf.TensorSpec(None)])
    def normalize(x, scale):
        return rms_norm(x, scale, fused=choice)

    x, scale = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)[:2], np.arange(8, dtype=np.float32)
    assert_close(normalize(x, scale), reference.rms_norm(x, scale))
    with pytest.raises(tf.errors.InvalidArgumentError):
        normalize(x, scale[:1])
