"""The gated norm, and groups along the axis: values, gradients, and what is refused."""

import keras
import numpy as np
import pytest
from keras import ops

from rmsnorm_tf import RMSNormalization, rms_norm
from tests import reference
from tests.backends import dtype_of, gradients, to_array
from tests.cases import assert_close
from tests.parameters import quick_one_of, slow

PATHS = [False, True]
GROUPS = [
    {"groups": 2},
    {"groups": 4, "partial": 0.5},
    {"axis": 1, "groups": 2},
    {"axis": 1, "groups": 3, "scale_axis": 2},
    {"axis": (1,), "groups": 3, "scale_axis": 0},
]
VARIANTS = [{}, {"partial": 0.3}, {"axis": 1, "scale_axis": 2}, *GROUPS]
SHAPE = (2, 6, 8)


def draw(dtype="float64", shape=SHAPE):
    """Returns two tensors, and exactly their numbers as float64."""
    tensors = [ops.cast(a, dtype) for a in np.random.default_rng(0).normal(size=(2, *shape))]
    return tensors, [to_array(t) for t in tensors]


def weights_for(axis=-1, scale_axis=None, **_):
    size = SHAPE[np.squeeze(axis if scale_axis is None else scale_axis)]
    return list(np.random.default_rng(1).normal(size=(2, size)))


def in_reference(partial=None, axis=-1, groups=1, **others):
    k = None if partial is None else int(np.ceil(SHAPE[np.squeeze(axis)] // groups * partial))
    return {"k": k, "axis": axis, "groups": groups, **others}


def gated(x, gate, scale=None, offset=None, **arguments):
    return rms_norm(x, scale, offset, gate=gate, **arguments)


def expected(x, gate, scale=None, offset=None, **arguments):
    return reference.rms_norm(x, scale, offset, **arguments) * reference.silu(to_array(gate))


both_paths = pytest.mark.parametrize("fused", PATHS)


@both_paths
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_rounded_once(dtype, fused):
    tensors, arrays = draw(dtype, (3, 64))
    actual = gated(*tensors, fused=fused)
    assert dtype_of(actual) == dtype
    assert_close(to_array(actual), expected(*arrays), dtype)


def test_groups_of_heads_are_the_norm_of_each_head():
    [x, _], _ = draw()
    heads = ops.reshape(x, (2, 6, 4, 2))
    assert_close(rms_norm(x, groups=4), ops.reshape(rms_norm(heads), SHAPE), "float64")


@both_paths
@pytest.mark.parametrize("variant", quick_one_of(2, VARIANTS))
def test_first_derivative(variant, fused):
    _, arrays = draw()
    sources = [*arrays, *weights_for(**variant)]
    dy = np.random.default_rng(2).normal(size=SHAPE)
    actual = gradients(lambda *s: gated(*s, **variant, fused=fused), sources, dy)
    for i, gradient in enumerate(actual):

        def loss(source, i=i):
            return np.sum(
                dy * expected(*sources[:i], source, *sources[i + 1 :], **in_reference(**variant))
            )

        np.testing.assert_allclose(
            to_array(gradient), reference.numerical_gradient(loss, sources[i]), rtol=1e-6, atol=1e-7
        )


@pytest.mark.parametrize("fused", [True, *slow(False)])
def test_second_derivative(fused):
    """Against that of a norm and a product, which are tested elsewhere."""
    [x, gate], _ = draw(shape=(2, 8))
    scale, offset, tangent, dy = ops.convert_to_tensor(
        np.random.default_rng(2).normal(size=(4, 2, 8))
    )

    def composed(x, gate):
        return rms_norm(x, scale[0], offset[0], fused=False) * gate * ops.sigmoid(gate)

    def second(function):
        first = lambda x, gate: gradients(function, [x, gate], dy)  # noqa: E731
        return gradients(first, [x, gate], [tangent, 2 * tangent])

    actual = second(lambda x, gate: gated(x, gate, scale[0], offset[0], fused=fused))
    for a, e in zip(actual, second(composed), strict=True):
        np.testing.assert_allclose(to_array(a), to_array(e), rtol=1e-9, atol=1e-9)


@both_paths
@pytest.mark.parametrize(("dtype", "gate"), [("float32", -100.0), ("float64", -1000.0)])
def test_second_derivatives_vanish_where_the_gate_is_closed(fused, dtype, gate):
    x = ops.ones((2, 8), dtype)
    gates = ops.full((2, 8), gate, dtype)

    def first(*sources):
        return gradients(
            lambda x, gate: rms_norm(x, gate=gate, fused=fused), sources, ops.ones((2, 8), dtype)
        )

    for second in gradients(first, [x, gates], [ops.ones((2, 8), dtype)] * 2):
        np.testing.assert_allclose(to_array(second), np.zeros((2, 8)), atol=1e-30)


def test_a_gate_that_does_not_fit_stops_a_functional_model():
    with pytest.raises(ValueError, match=r"\(None, 8\).*\(None, 4, 8\)"):
        RMSNormalization()(keras.Input((4, 8)), gate=keras.Input((8,)))
    assert RMSNormalization()(keras.Input((None, 8)), gate=keras.Input((4, 8))).shape == (
        None,
        None,
        8,
    )


def test_a_gate_that_does_not_fit():
    with pytest.raises(ValueError, match=r"gate has shape \(3,\).*\(2, 3\)"):
        rms_norm(ops.ones((2, 3)), gate=ops.ones(3))
    with pytest.raises(TypeError, match=r"gate .* float32, got float16. Cast"):
        rms_norm(ops.ones((2, 3)), gate=ops.ones((2, 3), "float16"))


def test_groups_that_are_refused():
    for call in (
        lambda **a: rms_norm(ops.ones((2, 8)), **a),
        lambda **a: RMSNormalization(**a)(ops.ones((2, 8))),
    ):
        with pytest.raises(ValueError, match="groups=3 does not divide 8"):
            call(groups=3)
        with pytest.raises(ValueError, match=r"groups=2 .* axis=\(0, 1\).* Merge"):
            call(groups=2, axis=(0, 1))
        for wrong in (0, -1, 1.5, True, None):
            with pytest.raises(ValueError, match=f"groups must be an integer .*got {wrong}"):
                call(groups=wrong)
    with pytest.raises(ValueError, match="axis 1, whose size is unknown"):
        RMSNormalization(axis=1, groups=2, scale=False).build((None, None, 4))


@both_paths
@pytest.mark.parametrize(("dtype", "gate"), [("float32", -70.0), ("float64", -600.0)])
def test_a_gate_that_is_almost_closed(dtype, gate, fused):
    """Its silu is tiny, and as exact as the exponential of the gate."""
    y = rms_norm(
        ops.ones((1, 8), dtype), gate=ops.full((1, 8), gate, dtype), epsilon=1e-30, fused=fused
    )
    np.testing.assert_allclose(
        to_array(y),
        np.full((1, 8), reference.silu(gate)),
        rtol=1e-5 if dtype == "float32" else 1e-12,
    )


@both_paths
@pytest.mark.parametrize(
    ("dtype", "lowest"), [("float32", -3e38), ("bfloat16", -3e38), ("float64", -1e308)]
)
def test_a_gate_that_is_closed_however_negative(dtype, lowest, fused):
    x = ops.ones((1, 4), dtype)
    gate = ops.convert_to_tensor([[lowest, lowest / 100, -1000.0, np.nan]], dtype)
    y = rms_norm(x, gate=gate, fused=fused)
    np.testing.assert_allclose(to_array(y), [[0, 0, 0, np.nan]], atol=1e-30)
    dy = np.array([[1.0, 1.0, 1.0, 0.0]], to_array(y).dtype)
    [dgate] = gradients(
        lambda gate: rms_norm(x, gate=gate, fused=fused), [gate], ops.cast(dy, dtype)
    )
    np.testing.assert_allclose(to_array(dgate)[:, :3], [[0, 0, 0]], atol=1e-30)


@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_a_gate_that_is_not_floating_point(dtype):
    with pytest.raises(TypeError, match=f"gate must be float16, .*got {dtype}. Cast it"):
        RMSNormalization()(ops.ones((2, 8)), gate=ops.ones((2, 8), dtype))
    with pytest.raises(TypeError, match=f"gate must be float16, .*got {dtype}. Cast it"):
        RMSNormalization()(keras.Input((8,)), gate=keras.Input((8,), dtype=dtype))


def test_a_gate_of_another_dtype():
    x, gate = draw()[0]
    layer = RMSNormalization(dtype="mixed_bfloat16")
    y = layer(ops.cast(x, "bfloat16"), gate=ops.cast(gate, "float32"))
    expected = reference.rms_norm(to_array(ops.cast(x, "bfloat16"))) * reference.silu(
        to_array(gate)
    )
    assert_close(to_array(y), expected, "bfloat16")
