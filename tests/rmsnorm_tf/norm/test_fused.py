"""What is compiled and when, and that plain and compiled operations compute the same."""

import gc

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
    """Returns how many of the functions in the graph of `function` XLA compiles."""
    graph = tf.function(function).get_concrete_function(*specs).graph
    return sum(each.attr["_XlaMustCompile"].b for each in graph.as_graph_def().library.function)


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
print("at most:", compiled_by([(length, 12) for length in range(1, 41)] * 4), end=" ")
print(compiled_by([(length, 20) for length in range(1, 201)], fused=True))
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
    assert result.stdout.splitlines()[-1] == "at most: 27 96"  # 32 and 128 with those before


@pytest.mark.parametrize(
    ("variable", "calls"),
    [
        ("false", (0, 0)),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [("0", (0, 0)), ("1", (1, 1)), ("True", (1, 1)), ("", (0, 1))]
        ),
    ],
)
def test_the_environment_variable_overrides_every_argument(variable, calls, run_python):
    script = """
import tensorflow as tf
from rmsnorm_tf import rms_norm
for choice in (False, True):
    graph = tf.function(lambda x: rms_norm(x, fused=choice)).get_concrete_function(tf.TensorSpec((2, 8))).graph
    print(sum(each.attr["_XlaMustCompile"].b for each in graph.as_graph_def().library.function))
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


WHILE_A_THREAD_TRACES = """
import os, signal, threading
import tensorflow as tf
from rmsnorm_tf import rms_norm

begun, go_on, init_scope = threading.Event(), threading.Event(), tf.init_scope

def waits_in_the_thread():
    if threading.current_thread() is thread:
        begun.set()
        go_on.wait()
    return init_scope()

def trace(size):
    tf.function(rms_norm).get_concrete_function(tf.TensorSpec((2, size)))

tf.init_scope = waits_in_the_thread
thread = threading.Thread(target=trace, args=[8], daemon=True)
thread.start()
assert begun.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(60)
    trace(9)
    os._exit(0)
status = os.waitpid(child, 0)[1]
go_on.set()
thread.join()
print("child ends with", status)
"""


def test_a_process_that_is_forked_while_another_thread_traces(run_python):
    result = run_python(WHILE_A_THREAD_TRACES)
    assert result.stdout == "child ends with 0\n", result.stderr


IN_THREADS = """
import os, threading
from pathlib import Path
os.environ["XLA_FLAGS"] = f"--xla_dump_to={Path.cwd() / 'programs'} --xla_dump_hlo_as_text"
import tensorflow as tf
from rmsnorm_tf import rms_norm

def programs():
    return len({path.name.split(".")[0] for path in Path("programs").glob("module_*")})

def compiled_by(shapes, count):
    before, gate = programs(), threading.Barrier(count)
    def run():
        gate.wait()
        for shape in shapes:
            rms_norm(tf.ones(shape))
    threads = [threading.Thread(target=run) for _ in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return programs() - before

print(compiled_by([(2, 8)] * 4, 16), [compiled_by([(2, 8 + i)] * 4, 1) for i in range(1, 32)].count(1))
"""


@pytest.mark.slow
def test_threads_compile_a_shape_once(run_python):
    """And it takes one of the 32 places for shapes that recur."""
    result = run_python(IN_THREADS, TF_XLA_FLAGS="")
    assert result.stdout == "1 31\n", result.stderr


def graphs():
    gc.collect()
    return sum(isinstance(each, tf.Graph) for each in gc.get_objects())


def test_graphs_share_the_functions_of_a_norm():
    """A graph that is dropped leaves nothing behind, and one that is traced again makes nothing new."""

    def trace():
        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x
                for _ in range(4):
                    y = rms_norm(y)
            return tape.gradient(y, x)

        step.get_concrete_function(tf.TensorSpec((None, 24)))

    trace()
    before = graphs()
    for _ in range(5):
        trace()
    assert graphs() <= before + 1


def test_variable_lengths_in_a_graph_trace_once():
    traces = []

    @tf.function(input_signature=[tf.TensorSpec((None, None, 1024))])
    def step(x):
        traces.append(x.shape)
        return rms_norm(x)

    for length in (20, 30, 40):
        step(tf.ones((2, length, 1024)))
    assert len(traces) == 1


def test_an_export_with_an_unknown_batch_compiles_nothing():
    layer = RMSNormalization()
    layer.build((None, 1024))
    assert compiled_calls(layer, tf.TensorSpec((None, 1024))) == 0


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
