"""What is compiled and when, and that plain and compiled operations compute the same."""

import gc

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormalization, rms_norm, set_fused
from tests import reference
from tests.cases import assert_close

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

small = [(length, 16) for length in range(1, 9)]
print("by default:", compiled_by([(64, 1024)] * 4), compiled_by(small))
print("on request:", compiled_by([(length, 4) for length in (1, 2, 3)] * 2, fused=True))
set_fused(False)
print("switched off:", compiled_by([(4, 24)], fused=True))
set_fused(True)
print("switched on:", compiled_by([(5, 24)], fused=False))
set_fused(None)
"""
AT_MOST = """
print("at most:", compiled_by([(length, 20) for length in range(1, 301)], fused=True))

def derivatives(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rms_norm(x)
        first = tape.gradient(y, x, tf.cos(x))
    return y, first, outer.gradient(first, x)

x = tf.random.stateless_normal((3, 21), (0, 0))
for beyond, graph in zip(derivatives(x), tf.function(derivatives)(x), strict=True):
    tf.debugging.assert_near(beyond, graph, 1e-5, 1e-5)
print("beyond: the same")
"""


@pytest.mark.slow
def test_eager_calls_compile_only_on_request(run_python):
    result = run_python(EAGER_CALLS)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "by default: 0 0",
        "on request: 3",
        "switched off: 0",
        "switched on: 1",
    ]


@pytest.mark.slow
def test_eager_calls_compile_up_to_a_limit(run_python):
    result = run_python(EAGER_CALLS + AT_MOST)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-2:] == [
        "at most: 249",
        "beyond: the same",
    ]  # 256 with those before


@pytest.mark.parametrize("fused", [None, False, True])
def test_every_eager_call_gives_the_same_bits(fused):
    """With or without a tape."""
    x, dy = tf.unstack(tf.random.stateless_normal((2, 80, 1024), (0, 0)))
    scale = x[0]

    def both():
        with tf.GradientTape() as tape:
            tape.watch([x, scale])
            y = rms_norm(x, scale, partial=0.5, fused=fused)
        return [y, *tape.gradient(y, [x, scale], dy)]

    first = both()
    for _ in range(3):
        for a, b in zip(first, both(), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(rms_norm(x, scale, partial=0.5, fused=fused), first[0])


def test_a_new_batch_size_traces_nothing():
    def call(size):
        x = tf.ones((size, 3, 40))
        scale = tf.ones(40)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rms_norm(x, scale)
        tape.gradient(y, x)

    call(1)
    before = graphs()
    for size in (2, 3, 0, 100):
        call(size)
    assert graphs() == before


def test_set_fused_overrides_every_argument_until_it_is_reset():
    specs = tf.TensorSpec(SMALL)

    def calls():
        return [
            compiled_calls(lambda x, c=choice: rms_norm(x, fused=c), specs)
            for choice in (False, None, True)
        ]

    try:
        set_fused(False)
        assert calls() == [0, 0, 0]
        set_fused(True)
        assert calls() == [1, 1, 1]
    finally:
        set_fused(None)
    assert calls() == [0, 0, 1]
    with pytest.raises(ValueError, match="True, False, None, got 'off'"):
        set_fused("off")


def graphs():
    gc.collect()
    return sum(isinstance(each, tf.Graph) for each in gc.get_objects())


def test_graphs_share_the_functions_of_a_norm():
    """A dropped graph leaves nothing behind, and one that is traced again makes nothing new."""

    def trace():
        @tf.function(autograph=False)  # its warning, which pytest keeps, would keep the graph
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
            return tf.while_loop(
                lambda i, h: i < 5, lambda i, h: (i + 1, rms_norm(h + x, fused=choice)), [0, x]
            )[1]

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

    x = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)[:2]
    scale = np.arange(8, dtype=np.float32)
    assert_close(normalize(x, scale), reference.rms_norm(x, scale))
    with pytest.raises(tf.errors.InvalidArgumentError):
        normalize(x, scale[:1])
