"""When `fused=None` compiles, and that it does not compile forever."""

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormalization, functional, fused, rms_norm
from tests import reference
from tests.cases import assert_close

LARGE = (64, 1024)
SMALL = (2, 8)


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    """Every test starts as a new process would."""
    monkeypatch.setattr(fused, "_compiled", {})
    monkeypatch.setattr(fused, "_chosen", set())
    caches = (fused._sightings, functional._matmul_is_exact)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


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


def test_an_eager_call_compiles_a_shape_when_it_comes_again():
    x = tf.ones(SMALL)
    compiled = []
    for _ in range(4):
        rms_norm(x)
        compiled.append(len(fused._compiled))
    assert compiled == [0, 0, 1, 1]
    rms_norm(x, epsilon=0.5)
    assert len(fused._compiled) == 1


def test_ever_new_lengths_are_not_compiled():
    for length in range(1, 100):
        rms_norm(tf.ones((length, 8)))
    assert not fused._compiled


def test_eager_calls_compile_a_limited_number_of_shapes(monkeypatch):
    monkeypatch.setattr(fused, "_MOST_SHAPES_COMPILED_EAGERLY", 3)
    for _ in range(5):
        for length in range(1, 7):
            y = rms_norm(tf.fill((length, 8), 2.0))
    assert len(fused._compiled) == 3
    assert_close(y, reference.rms_norm(np.full((6, 8), 2.0)))


def test_what_is_compiled_by_request_or_in_a_graph_does_not_count(monkeypatch):
    monkeypatch.setattr(fused, "_MOST_SHAPES_COMPILED_EAGERLY", 1)
    for length in range(1, 4):
        rms_norm(tf.ones((length, 8)), fused=True)
    tf.function(rms_norm).get_concrete_function(tf.TensorSpec(LARGE))
    for _ in range(3):
        rms_norm(tf.ones((9, 8)))
    assert len(fused._compiled) == 5


def test_variable_lengths_in_a_graph_trace_once():
    traces = []

    @tf.function(input_signature=[tf.TensorSpec((None, None, 1024))])
    def step(x):
        traces.append(x.shape)
        return rms_norm(x)

    for length in (20, 30, 40):
        step(tf.ones((2, length, 1024)))
    assert len(traces) == 1
    assert not fused._compiled


def test_an_export_with_an_unknown_batch_calls_no_nested_function():
    layer = RMSNormalization()
    layer.build((None, 1024))
    assert compiled_calls(layer, tf.TensorSpec((None, 1024))) == 0


@pytest.mark.parametrize(
    "shape", [(1024, 64), (16, 64), (1032, 24), (520, 20), (16, 33, 8), (1030, 64), (8, 9, 10, 16), (3, 6144)]
)
@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_sums_written_for_each_device(dtype, shape, gpu, monkeypatch):
    devices = [tf.config.LogicalDevice("GPU:0", "GPU")] if gpu else []
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices)
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(2, *shape))
    scale = rng.normal(size=shape[-1])

    def gradients(choice, dtype):
        sources = [tf.constant(a, dtype) for a in (x, scale)]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = rms_norm(*sources, fused=choice)
        return [y, *tape.gradient(y, sources, tf.constant(dy, dtype))]

    for actual, expected in zip(gradients(True, dtype), gradients(False, "float64"), strict=True):
        assert_close(actual, expected, dtype, factor=10)


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
