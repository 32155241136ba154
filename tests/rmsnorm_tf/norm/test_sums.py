"""Sums over rows and columns of every length: their errors, and the size of programs."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import rms_norm
from tests import reference
from tests.parameters import slow

# Of the largest value, whatever the length: of y and dx; of gains, offsets and constant rows.
BAR = 2e-6
LOOSE_BAR = 1e-5

LENGTHS = [2, 1023, 1024, 4099, 65_537]
OTHER_LENGTHS = [127, 512, 1537, 4095, 4096, 1_000_003, 2**22, 2**24, 16_000_057]


def passes(x, dy, weights, modes="eager", **arguments):
    """Returns y and all gradients."""

    def both(x, dy, *weights):
        sources = [x, *weights]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            y = rms_norm(*sources, **arguments)
        return [y, *tape.gradient(y, sources, dy)]

    shape = [None] * x.ndim if modes != "unknown rows" else [None, *x.shape[1:]]
    specs = [tf.TensorSpec(shape)] * 2 + [tf.TensorSpec(w.shape) for w in weights]
    run = {
        "eager": lambda: both,
        "unknown rows": lambda: tf.function(both, input_signature=specs, autograph=False),
        "unknown sizes": lambda: tf.function(both, input_signature=specs, autograph=False),
        "XLA of unknown sizes": lambda: tf.function(
            both, input_signature=specs, autograph=False, jit_compile=True
        ),
    }[modes]()
    return run(*(tf.constant(a) for a in (x, dy, *weights)))


def expected(x, dy, scale, offset, axes, scale_axes):
    """Returns y and all gradients in float64, or their parts that the weights allow."""
    x, dy, scale, offset = (np.asarray(a, np.float64) for a in (x, dy, scale, offset))
    count = np.prod([x.shape[a] for a in axes])
    u = 1 / np.sqrt(np.sum(x**2, axes, keepdims=True) / count + 1e-6)
    shape = [size if a in scale_axes else 1 for a, size in enumerate(x.shape)]
    others = tuple(a for a in range(x.ndim) if a not in scale_axes)
    z = x * u
    g = dy * scale.reshape(shape)
    dx = u * (g - z * np.sum(g * z, axes, keepdims=True) / count)
    return (
        z * scale.reshape(shape) + offset.reshape(shape),
        dx,
        np.sum(dy * z, others),
        np.sum(dy, others),
    )


def assert_within_the_bar(actual, wanted, bars=(BAR, BAR, LOOSE_BAR, LOOSE_BAR)):
    for a, w, bar in zip(actual, wanted, bars[: len(wanted)], strict=True):
        error = np.max(np.abs(np.asarray(a, np.float64) - w)) / np.max(np.abs(w))
        assert error <= bar, error


def draw(shape, sizes):
    rng = np.random.default_rng(0)
    x, dy = (rng.standard_normal(shape, np.float32) + np.float32(0.5) for _ in range(2))
    return x, dy, [rng.standard_normal(sizes, np.float32) for _ in range(2)]


every_mode = pytest.mark.parametrize(
    ("mode", "fused"),
    [
        ("eager", False),
        ("eager", True),
        ("unknown sizes", True),
        pytest.param("unknown sizes", None, marks=pytest.mark.slow),
        pytest.param("XLA of unknown sizes", None, marks=pytest.mark.slow),
    ],
)


@every_mode
@pytest.mark.parametrize("length", [*LENGTHS, *slow(*OTHER_LENGTHS)])
def test_rows_of_every_length(length, mode, fused):
    if mode.startswith("XLA") and length > 2**16:
        pytest.skip("XLA adds one entry after the other where the graph does not know the size")
    x, dy, weights = draw((2 if length < 2**20 else 1, length), length)
    actual = passes(x, dy, weights, mode, fused=fused)
    assert_within_the_bar(actual, expected(x, dy, *weights, (1,), (1,)))


@every_mode
@pytest.mark.parametrize(
    "shape", [(1, 3), (129, 5), (4097, 2), (300_000, 16), *slow((16_000_000, 4))]
)
def test_sums_over_many_rows(shape, mode, fused):
    x, dy, weights = draw(shape, shape[-1])
    assert_within_the_bar(
        passes(x, dy, weights, mode, fused=fused), expected(x, dy, *weights, (1,), (1,))
    )


@every_mode
@pytest.mark.parametrize("shape", [(2, 9, 7, 3), (2, 300, 301, 3), *slow((1, 4000, 4000, 3))])
def test_images(shape, mode, fused):
    x, dy, weights = draw(shape, shape[-1])
    actual = passes(x, dy, weights, mode, axis=(1, 2), scale_axis=-1, fused=fused)
    assert_within_the_bar(actual, expected(x, dy, *weights, (1, 2), (3,)))


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("axes", [(0,), (1, 3), (0, 1, 2), *slow((0, 2), (0, 3))], ids=str)
def test_axes_with_gaps(axes, fused):
    x, dy, _ = draw((33, 40, 5, 36), 1)
    weights = draw((1,), [x.shape[a] for a in axes])[2]
    actual = passes(x, dy, weights, axis=axes, fused=fused)
    assert_within_the_bar(actual, expected(x, dy, *weights, axes, axes))


@pytest.mark.parametrize(
    ("mode", "fused"),
    [
        ("eager", True),
        ("unknown rows", True),
        pytest.param("eager", False, marks=pytest.mark.slow),
        pytest.param("unknown sizes", None, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("length", [3072, 10_000, *slow(1023, 1500, 2000, 4096)])
def test_constant_rows(length, rows, mode, fused):
    """The worst case of a sum: all roundings have one sign, for some values of x."""
    dy = np.zeros((rows, length), np.float32)
    dy[:, : length // 3] = 0.7
    weights = [np.ones(length, np.float32), np.zeros(length, np.float32)]
    for value in np.float32([0.6042, 0.7708, 0.8542]):
        x = np.full((rows, length), value)
        actual = passes(x, dy, weights, mode, fused=fused)
        wanted = expected(x, dy, *weights, (1,), (1,))
        assert_within_the_bar(actual[:2], wanted[:2], [LOOSE_BAR] * 2)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("value", [0.7, *slow(0.1, 1.0)])
@pytest.mark.parametrize("length", [3_000_001, *slow(30_000_001)])
def test_a_long_constant_row(length, value, fused):
    x = tf.fill((1, length), value)
    exact = np.float64(x[0, 0].numpy())
    wanted = exact / np.sqrt(exact**2 + 1e-6)
    np.testing.assert_allclose(
        rms_norm(x, fused=fused), np.full((1, length), wanted), rtol=LOOSE_BAR
    )


def operations(shape, **arguments):
    """Returns the number of operations of both passes, compiled or not, without running them."""

    def both(x):
        scale = tf.ones(shape[-1])
        with tf.GradientTape() as tape:
            tape.watch([x, scale])
            y = rms_norm(x, scale, **arguments)
        return tape.gradient(y, [x, scale])

    graph = tf.function(both).get_concrete_function(tf.TensorSpec(shape)).graph
    definition = graph.as_graph_def()
    return len(definition.node) + sum(
        len(function.node_def) for function in definition.library.function
    )


@pytest.mark.parametrize("fused", [False, True])
def test_programs_do_not_grow_with_a_size(fused):
    base = operations((2, 2**24), fused=fused)
    assert operations((2, 2**28), fused=fused) <= base
    many = operations((2**16, 8), fused=fused)
    assert operations((2**28, 8), fused=fused) <= many + 5


def test_a_partial_statistic_of_a_long_row_has_a_small_program():
    traced = tf.function(lambda x: rms_norm(x, partial=0.5, fused=False))
    assert (
        traced.get_concrete_function(tf.TensorSpec((2, 2**28))).graph.as_graph_def().ByteSize()
        < 2**20
    )


@pytest.mark.parametrize("batch", [2, None])
@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated:UserWarning")
def test_long_rows_in_tflite(batch):
    """Which has no sums in float64."""
    x, _, _ = draw((2, 4099), 1)
    call = tf.function(
        lambda x: rms_norm(x, fused=False), input_signature=[tf.TensorSpec((batch, 4099))]
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions([call.get_concrete_function()])
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    [given] = interpreter.get_input_details()
    [result] = interpreter.get_output_details()
    interpreter.resize_tensor_input(given["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    assert_within_the_bar([interpreter.get_tensor(result["index"])], [reference.rms_norm(x)])


@pytest.mark.parametrize("shape", [(0, 16), (3, 16)])
def test_a_compiled_layer_of_an_unknown_batch(shape):
    """As in `fit`, whose last batch is smaller."""
    scale = tf.ones(16)

    @tf.function(input_signature=[tf.TensorSpec((None, 16))])
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch([x, scale])
            y = rms_norm(x, scale, scale, fused=True)
        return y, tape.gradient(y, [x, scale])

    y, (dx, dscale) = both(tf.ones(shape))
    assert (y.shape, dx.shape, dscale.shape) == (shape, shape, (16,))


def has_products():
    """Whether a compiled sum is a matrix product."""
    function = tf.function(lambda x: rms_norm(x, fused=True))
    graph = function.get_concrete_function(tf.TensorSpec((40, 64))).graph.as_graph_def()
    return any(
        node.op == "MatMul" for function in graph.library.function for node in function.node_def
    )


@pytest.mark.slow
def test_sums_written_for_an_accelerator(run_python):
    """Run on a CPU, in a process that writes programs for another machine."""
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.rmsnorm_tf.norm.test_sums import (
    assert_within_the_bar, draw, expected, has_products, passes
)
assert not has_products()
for shape in ((40, 64), (3, 700)):
    x, dy, weights = draw(shape, shape[-1])
    for fused in (False, True):
        wanted = expected(x, dy, *weights, (1,), (1,))
        assert_within_the_bar(passes(x, dy, weights, fused=fused), wanted)
print("agree")
"""
    result = run_python(script, Path(__file__).parents[3], RMSNORM_TF_SUMS="plain")
    assert result.stdout == "agree\n", result.stderr
    assert has_products()


@pytest.mark.slow
def test_an_environment_variable_that_says_neither(run_python):
    result = run_python("import rmsnorm_tf", RMSNORM_TF_SUMS="maybe")
    assert result.returncode != 0
    assert "RMSNORM_TF_SUMS must be products, " in result.stderr


def test_the_reference_agrees_with_the_one_of_all_tests():
    x, dy, weights = draw((2, 9, 7, 3), 3)
    y = reference.rms_norm(x, *weights, axis=(1, 2), scale_axis=-1)
    np.testing.assert_allclose(expected(x, dy, *weights, (1, 2), (3,))[0], y, rtol=1e-12)
