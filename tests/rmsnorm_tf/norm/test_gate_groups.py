"""The norm of a sum, the gated norm, and groups along the axis: values, gradients, and what is refused."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf import AddRMSNormalization, RMSNormalization, add_rms_norm, rms_norm
from tests import reference
from tests.cases import TOLERANCE, assert_close
from tests.parameters import quick_one_of, slow

PATHS = [False, True]
GROUPS = [
    {"groups": 2},
    {"groups": 4, "partial": 0.5},
    {"axis": 1, "groups": 2},
    {"axis": 1, "groups": 3, "scale_axis": 2},
]
VARIANTS = [{}, {"partial": 0.3}, {"axis": 1, "scale_axis": 2}, *GROUPS]
SHAPE = (2, 6, 8)


def draw(dtype="float64", shape=SHAPE):
    """Returns two tensors, and exactly their numbers as float64."""
    tensors = [tf.cast(a, dtype) for a in np.random.default_rng(0).normal(size=(2, *shape))]
    return tensors, [tf.cast(t, tf.float64).numpy() for t in tensors]


def weights_for(axis=-1, scale_axis=None, **_):
    size = SHAPE[axis if scale_axis is None else scale_axis]
    return list(np.random.default_rng(1).normal(size=(2, size)))


def in_reference(partial=None, axis=-1, groups=1, **others):
    k = None if partial is None else int(np.ceil(SHAPE[axis] // groups * partial))
    return {"k": k, "axis": axis, "groups": groups, **others}


def outputs(kind, x, other, scale, offset, **arguments):
    """Returns the results of one of the two functions as a list."""
    if kind == "gate":
        return [rms_norm(x, scale, offset, gate=other, **arguments)]
    return list(add_rms_norm(x, other, scale, offset, **arguments))


def expected(kind, x, other, scale, offset, **arguments):
    if kind == "gate":
        return [reference.rms_norm(x, scale, offset, **arguments) * reference.silu(other)]
    return [reference.rms_norm(x + other, scale, offset, **arguments), x + other]


def gradients_of(function, sources, upstream):
    sources = [tf.convert_to_tensor(s) for s in sources]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        results = function(*sources)
    return tape.gradient(results, sources, upstream)


both_kinds = pytest.mark.parametrize("kind", ["gate", "sum"])
both_paths = pytest.mark.parametrize("fused", PATHS)


@both_kinds
@both_paths
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_values(kind, variant, fused):
    tensors, arrays = draw("float32")
    weights = [w.astype(np.float32) for w in weights_for(**variant)]
    actual = outputs(kind, *tensors, *weights, **variant, fused=fused)
    for a, e in zip(actual, expected(kind, *arrays, *weights, **in_reference(**variant)), strict=True):
        assert a.dtype == "float32"
        assert_close(a, e, factor=2)


@both_kinds
@both_paths
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_rounded_once(kind, dtype, fused):
    tensors, arrays = draw(dtype, (3, 64))
    actual = outputs(kind, *tensors, None, None, fused=fused)
    wanted = expected(kind, *arrays, None, None)
    if kind == "sum":  # what is normalized is the sum that is returned
        wanted[0] = reference.rms_norm(tf.cast(actual[1], tf.float64).numpy())
    for a, e in zip(actual, wanted, strict=True):
        assert a.dtype == dtype
        assert_close(tf.cast(a, tf.float64), e, dtype)


@both_paths
@pytest.mark.parametrize("variant", GROUPS, ids=str)
def test_groups(variant, fused):
    [x, _], [x64, _] = draw()
    weights = weights_for(**variant)
    assert_close(
        rms_norm(x, *weights, **variant, fused=fused),
        reference.rms_norm(x64, *weights, **in_reference(**variant)),
        "float64",
    )


def test_groups_of_heads_are_the_norm_of_each_head():
    [x, _], _ = draw()
    heads = tf.reshape(x, (2, 6, 4, 2))
    assert_close(rms_norm(x, groups=4), tf.reshape(rms_norm(heads), SHAPE), "float64")


@both_kinds
@both_paths
@pytest.mark.parametrize("variant", quick_one_of(2, VARIANTS))
def test_first_derivative(kind, variant, fused):
    _, arrays = draw()
    sources = [*arrays, *weights_for(**variant)]
    upstream = list(np.random.default_rng(2).normal(size=(1 if kind == "gate" else 2, *SHAPE)))
    actual = gradients_of(lambda *s: outputs(kind, *s, **variant, fused=fused), sources, upstream)
    for i, gradient in enumerate(actual):

        def loss(source, i=i):
            results = expected(kind, *sources[:i], source, *sources[i + 1 :], **in_reference(**variant))
            return sum(np.sum(u * r) for u, r in zip(upstream, results, strict=True))

        np.testing.assert_allclose(gradient, reference.numerical_gradient(loss, sources[i]), rtol=1e-6, atol=1e-7)


MODES = {"eager": lambda f: f, "graph": tf.function, "XLA": lambda f: tf.function(f, jit_compile=True)}


@both_kinds
@pytest.mark.parametrize("fused", [True, *slow(False)])
@pytest.mark.parametrize("mode", ["eager", *slow("graph", "XLA")])
def test_second_derivative_and_forward_mode(kind, fused, mode):
    """Against the same derivatives of the function composed of an addition or a product, which are tested elsewhere."""
    [x, other], _ = draw(shape=(2, 8))
    scale, offset, tangent, *upstream = tf.unstack(np.random.default_rng(2).normal(size=(6, 2, 8)))
    upstream = upstream[:1] if kind == "gate" else upstream[:2]

    def composed(x, other):
        if kind == "gate":
            return [rms_norm(x, scale[0], offset[0], fused=False) * other * tf.sigmoid(other)]
        return [rms_norm(x + other, scale[0], offset[0], fused=False), x + other]

    def whole(x, other):
        return outputs(kind, x, other, scale[0], offset[0], fused=fused)

    def second(function):
        first = lambda x, other: gradients_of(function, [x, other], upstream)  # noqa: E731
        return gradients_of(first, [x, other], [tangent, 2 * tangent])

    def forward(function):
        with tf.autodiff.ForwardAccumulator([x, other], [tangent, 2 * tangent]) as accumulator:
            results = function(x, other)
        return accumulator.jvp(results)

    for derivative in (second, forward):
        actual = MODES[mode](lambda d=derivative: d(whole))()
        for a, e in zip(actual, derivative(composed), strict=True):
            np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-9)


@both_paths
@pytest.mark.parametrize(("dtype", "gate"), [("float32", -100.0), ("float64", -1000.0)])
def test_second_derivatives_vanish_where_the_gate_is_closed(fused, dtype, gate):
    x, gates = tf.ones((2, 8), dtype), tf.fill((2, 8), tf.constant(gate, dtype))

    def first(*sources):
        return gradients_of(lambda x, gate: rms_norm(x, gate=gate, fused=fused), sources, tf.ones((2, 8), dtype))

    for second in gradients_of(first, [x, gates], [tf.ones((2, 8), dtype)] * 2):
        np.testing.assert_allclose(second, np.zeros((2, 8)), atol=1e-30)


@both_paths
def test_only_one_result_of_a_sum_is_used(fused):
    [x, residual], arrays = draw()
    for index in range(2):
        dx, dresidual = gradients_of(lambda *s, i=index: add_rms_norm(*s, fused=fused)[i], [x, residual], None)
        np.testing.assert_array_equal(dx, dresidual)
        loss = lambda a, i=index: np.sum(expected("sum", a, arrays[1], None, None)[i])  # noqa: E731
        np.testing.assert_allclose(dx, reference.numerical_gradient(loss, arrays[0]), rtol=1e-6, atol=1e-7)


@both_kinds
def test_unknown_sizes_that_differ_are_not_broadcast(kind):
    @tf.function(input_signature=[tf.TensorSpec((None, None, 8))] * 2)
    def call(x, other):
        return outputs(kind, x, other, None, None)

    call(tf.ones(SHAPE), tf.ones(SHAPE))
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(tf.ones(SHAPE), tf.ones((2, 1, 8)))


def test_a_gate_that_does_not_fit_stops_a_functional_model():
    with pytest.raises(ValueError, match=r"gate must have the shape of x, \(None, 4, 8\), got \(None, 8\)"):
        RMSNormalization()(keras.Input((4, 8)), gate=keras.Input((8,)))
    assert RMSNormalization()(keras.Input((None, 8)), gate=keras.Input((4, 8))).shape == (None, None, 8)


@pytest.mark.parametrize(
    "function", [lambda x, gate: rms_norm(x, gate=gate), lambda x, residual: add_rms_norm(x, residual)]
)
def test_another_tensor_that_does_not_fit(function):
    with pytest.raises(ValueError, match=r"(gate|residual) must have the shape of x, \(2, 3\), got \(3,\). It is not"):
        function(tf.ones((2, 3)), tf.ones(3))
    with pytest.raises(TypeError, match=r"(gate|residual) must have the dtype of x, float32, got float16. Cast"):
        function(tf.ones((2, 3)), tf.ones((2, 3), tf.float16))
    with pytest.raises(TypeError, match=r"takes no (gate for a )?ragged tensor"):
        function(tf.RaggedTensor.from_row_lengths(tf.ones((3, 2)), [2, 1]), tf.ones((3, 2)))


def test_groups_that_are_refused():
    for call in (lambda **a: rms_norm(tf.ones((2, 8)), **a), lambda **a: RMSNormalization(**a)(tf.ones((2, 8)))):
        with pytest.raises(ValueError, match="groups=3 does not divide 8, the size of axis -1"):
            call(groups=3)
        with pytest.raises(ValueError, match=r"groups=2 needs a single axis, got axis=\(0, 1\). Merge"):
            call(groups=2, axis=(0, 1))
        for wrong in (0, -1, 1.5, True, None):
            with pytest.raises(ValueError, match=f"groups must be an integer of at least 1, got {wrong}"):
                call(groups=wrong)
    with pytest.raises(ValueError, match="groups=2 takes a part of axis 1, whose size is unknown"):
        RMSNormalization(axis=1, groups=2, scale=False).build((None, None, 4))


def test_ragged_groups():
    ragged = tf.RaggedTensor.from_row_lengths(np.arange(12.0).reshape(3, 4), [2, 1])
    y = rms_norm(ragged, groups=2)
    assert_close(y.flat_values, reference.rms_norm(ragged.flat_values, groups=2), "float64")


@pytest.mark.parametrize("arrives", [("bfloat16", "float32"), ("float32", "bfloat16"), ("float16", "float16")])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "float64"])
def test_the_layer_rounds_the_sum_to_the_wider_dtype_and_the_norm_to_the_compute_dtype(policy, arrives):
    x, residual = (tf.cast(t, dtype) for t, dtype in zip(draw()[0], arrives, strict=True))
    layer = AddRMSNormalization(dtype=policy)
    y, total = layer([x, residual])
    assert y.dtype == layer.compute_dtype
    wider = keras.backend.result_type(*arrives, layer.compute_dtype)
    assert total.dtype == wider
    assert_close(tf.cast(total, tf.float64), tf.cast(x, tf.float64) + tf.cast(residual, tf.float64), wider)
    expected = reference.rms_norm(tf.cast(total, tf.float64))
    assert_close(tf.cast(y, tf.float64), expected, max(layer.compute_dtype, "float32", key=TOLERANCE.get))
    symbolic = layer([keras.KerasTensor(SHAPE, a) for a in arrives])
    assert [s.dtype for s in symbolic] == [y.dtype.name, total.dtype.name]


def test_a_gate_of_another_dtype():
    x, gate = draw()[0]
    layer = RMSNormalization(dtype="mixed_bfloat16")
    y = layer(tf.cast(x, tf.bfloat16), gate=tf.cast(gate, tf.float32))
    expected = reference.rms_norm(tf.cast(tf.cast(x, tf.bfloat16), tf.float64)) * reference.silu(gate)
    assert_close(tf.cast(y, tf.float64), expected, "bfloat16")


class Mask(keras.layers.Layer):
    """Returns the mask that arrives with its input, or zeros."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return tf.zeros(inputs.shape[:2], tf.bool) if mask is None else mask


def test_masks_of_a_sum():
    tokens = np.array([[1, 2, 0, 0], [4, 0, 0, 0]])
    embedding, plain = keras.layers.Embedding(5, 8, mask_zero=True), tf.ones((2, 4, 8))
    masked = embedding(tokens)
    for inputs in ([masked, plain], [plain, masked], [masked, masked]):
        for result in AddRMSNormalization()(inputs):
            np.testing.assert_array_equal(Mask()(result), tokens != 0)
    inputs = [masked, embedding(tokens[::-1])]
    for result in AddRMSNormalization()(inputs):
        np.testing.assert_array_equal(Mask()(result), Mask()(keras.layers.Add()(inputs)))
    assert not np.any(Mask()(AddRMSNormalization()([plain, plain])[0]))


def test_inputs_of_the_layer_that_are_refused():
    x = tf.ones((2, 4))
    for wrong in (x, [x], [x, x, x]):
        with pytest.raises(
            ValueError, match=r"AddRMSNormalization takes a list of two tensors.* norm\(\[x, residual\]\)"
        ):
            AddRMSNormalization()(wrong)
    with pytest.raises(ValueError, match=r"must have the same shape, got \(2, 4\) and \(4,\). They are not broadcast"):
        AddRMSNormalization()([x, x[0]])
    with pytest.raises(TypeError, match=r"AddRMSNormalization has no argument 'eps'\. Use 'epsilon' instead"):
        AddRMSNormalization(eps=1e-5)
    with pytest.raises(TypeError, match=r"add_rms_norm has no argument 'weight'\. Use 'scale' instead"):
        add_rms_norm(x, x, weight=x[0])
