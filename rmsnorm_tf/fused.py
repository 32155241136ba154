"""`rms_norm`, the public function, and its choice between plain operations and one compiled by XLA."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence

import tensorflow as tf

from rmsnorm_tf import functional
from rmsnorm_tf.equation import Equation, check_axis, check_epsilon, check_flag, check_partial

# Where compiling pays, measured with benchmarks/layer.py on a two-core CPU: from this many entries on.
_ENTRIES_WORTH_COMPILING = 2**14

# What is in the processor's cache costs less to be summed in float64, where no square of a float32 overflows, than to
# be checked for overflow.
_MOST_ENTRIES_SUMMED_IN_FLOAT64 = 2**18

# Of rows twice as long or longer, slices of this length or a little more are added before their product with ones.
_LONGEST_PRODUCT = 2048

# Compiling takes about as long as a thousand small calls. So an eager call compiles a shape when it is seen for the
# third time, and no more shapes than this: inputs of ever new lengths are left to plain operations.
_SIGHTINGS_BEFORE_COMPILING = 3
_MOST_SHAPES_COMPILED_EAGERLY = 32

_compiled: dict[tuple, Callable[..., tf.Tensor]] = {}
_chosen: set[tuple] = set()  # Of what is compiled, what eager calls compiled without being asked to.


def rms_norm(
    x: tf.Tensor | tf.RaggedTensor,
    scale: tf.Tensor | None = None,
    offset: tf.Tensor | None = None,
    *,
    axis: int | Sequence[int] = -1,
    scale_axis: int | Sequence[int] | None = None,
    partial: float | None = None,
    epsilon: float = 1e-6,
    fused: bool | None = None,
) -> tf.Tensor | tf.RaggedTensor:
    """Divides `x` by its root mean square over `axis`.

    The equation is `y = x / sqrt(mean(x**2, axis) + epsilon) * scale + offset`, with epsilon inside
    the root. The mean, the root and the products are computed in float32 at least, in float64 where `x`
    is float64, and `y` is rounded to the dtype of `x` at the end. Rows whose squares overflow that dtype
    are normalized like any other. The gradient keeps `x` and one number per row; second derivatives
    work. There is no mask: every row stands for itself, so padded rows disturb no other.

    >>> rms_norm(tf.constant([[3.0, 4.0]]), epsilon=1e-12).numpy().round(4)
    array([[0.8485, 1.1314]], dtype=float32)

    Args:
        x: float16, bfloat16, float32 or float64, of known rank; or a ragged tensor whose last
            dimension is uniform, normalized over that.
        scale: The gain, with one dimension for each of `scale_axis`, in the order of x's dimensions.
            None (default) multiplies by nothing.
        offset: What is added at the end, shaped like `scale`. None (default) adds nothing.
        axis: Axis or axes of the mean, in any order, negative ones counted from the end. Default: -1.
        scale_axis: Axis or axes of `scale` and `offset`. None (default): the same as `axis`.
        partial: p in (0, 1]; the mean takes the first `ceil(size * p)` entries of the single `axis`
            only. None (default) takes all.
        epsilon: Added to the mean square. Default: 1e-6.
        fused: True compiles with XLA, once for every new shape; False never does, which TFLite and
            ONNX need, and a tape around a forward accumulator in eager mode. None (default) compiles
            large inputs of a static shape, and in eager mode shapes that come again.

    Returns:
        A tensor of the shape and dtype of `x`.

    Raises:
        TypeError: `x`, `scale` or `offset` is not floating point.
        ValueError: An argument is out of its range, or does not fit the shape of `x`.

    Reference:
        Zhang & Sennrich 2019, arXiv 1910.07467, equation 4 and section 3.2 (partial).
    """
    axis = check_axis("axis", axis)
    scale_axis = None if scale_axis is None else check_axis("scale_axis", scale_axis)
    partial = check_partial(partial, axis)
    epsilon = check_epsilon(epsilon)
    check_flag("fused", fused, (True, False, None))
    if isinstance(x, tf.RaggedTensor):
        rows = functools.partial(rms_norm, scale=scale, offset=offset, partial=partial, epsilon=epsilon, fused=fused)
        return _over_last_dimension(rows, x, axis, scale_axis)
    x = tf.convert_to_tensor(x)
    check_dtype("x", x.dtype)
    if x.shape.rank is None:
        raise ValueError("x must have a known rank, got a tensor of unknown rank. Use tf.ensure_shape.")
    equation = Equation.for_shape(x.shape, axis, scale_axis, partial, epsilon)
    weights = _weights(equation, x, scale, offset)
    return _implementation(equation, x, weights, fused)(x, *weights)


def check_dtype(name: str, dtype: tf.DType | str) -> None:
    """Raises a TypeError unless `dtype` is floating point."""
    dtype = tf.as_dtype(dtype)
    if not dtype.is_floating:
        raise TypeError(
            f"{name} must be float16, bfloat16, float32 or float64, got {dtype.name}. "
            f"Cast it first, for example with tf.cast({name}, tf.float32)."
        )


def _weights(equation, x, scale, offset):
    """Returns scale and offset in the wide dtype, as few as have to be there."""
    wide = functional.wide_dtype(x.dtype)
    shape = equation.scale_shape(x.shape)
    weights = []
    for name, weight in (("scale", scale), ("offset", offset)):
        if weight is None:
            continue
        weight = tf.convert_to_tensor(weight, dtype_hint=wide)
        check_dtype(name, weight.dtype)
        if weight.shape != shape:
            if not weight.shape.is_compatible_with(shape):
                raise ValueError(
                    f"{name} has shape {weight.shape}, but x of shape {x.shape} needs {tf.TensorShape(shape)}: its "
                    f"sizes at {equation.scale_axes}. Reshape {name}, or choose another scale_axis. A layer takes no "
                    "other sizes than those that it was built with."
                )
            weight = tf.ensure_shape(weight, shape)
        weights.append(weight if weight.dtype == wide else tf.cast(weight, wide))
    if scale is None and offset is not None:
        weights.insert(0, tf.ones_like(weights[0]))
    return weights


def _implementation(equation, x, weights, fused):
    key = (equation, tuple(x.shape), x.dtype, len(weights), tf.executing_eagerly())
    if fused is None:
        fused = _compiling_pays(key, x)
    if not fused:
        return functional.differentiable(
            equation,
            functools.partial(functional.forward, equation),
            functools.partial(functional.backward, equation),
        )
    if key not in _compiled:
        _compiled[key] = _compile(equation, x, len(weights))
    return _compiled[key]


def _compiling_pays(key, x):
    if not x.shape.is_fully_defined():
        return False
    if not tf.executing_eagerly():
        return math.prod(x.shape) >= _ENTRIES_WORTH_COMPILING
    if key in _compiled:
        return True
    seen_often = next(_sightings(key)) >= _SIGHTINGS_BEFORE_COMPILING
    if not seen_often or len(_chosen) >= _MOST_SHAPES_COMPILED_EAGERLY:
        return False
    _chosen.add(key)
    return True


@functools.lru_cache(maxsize=1024)
def _sightings(key):
    return itertools.count(1)


def _compile(equation, x, count):
    """Compiles both passes for an input like x and `count` weights."""
    for_forward, for_backward = {}, {}
    if not tf.config.list_logical_devices("GPU"):
        for_forward = {"square_sum": _matmul_square_sum}
        for_backward = {"column_sum": _sliced_column_sum}

    def forward(*tensors):
        return functional.forward(equation, *tensors, **for_forward)

    def backward(*tensors):
        return functional.backward(equation, *tensors, **for_backward)

    wide = functional.wide_dtype(x.dtype)
    like_x = tf.TensorSpec(x.shape, x.dtype)
    like_u = tf.TensorSpec([1 if a in equation.axes else size for a, size in enumerate(x.shape)], wide)
    like_weights = [tf.TensorSpec(equation.scale_shape(x.shape), wide)] * count
    normalize = functional.differentiable(
        equation,
        _trace(forward, like_x, *like_weights, jit_compile=True),
        _trace(backward, like_x, like_u, like_x, like_u, *like_weights[:1], jit_compile=True),
    )
    if not tf.executing_eagerly():
        return normalize
    # A custom gradient costs an eager call more than a small input does, and nothing inside of a function.
    return _trace(normalize, like_x, *like_weights, jit_compile=False)


def _trace(function, *specs, jit_compile):
    """Traces a function for inputs like these: to call what is traced already costs least."""
    return tf.function(function, jit_compile=jit_compile, autograph=False).get_concrete_function(*specs)


# On a CPU, XLA vectorizes matrix products and elementwise sums, but neither sums along a row nor long ones along a
# column. So squares are summed along rows as a product with ones, where rows are long after adding slices of them; and
# columns by first adding eight slices.


def _matmul_square_sum(t, axes):
    size = t.shape[-1]
    if axes != (t.shape.rank - 1,) or size is None:
        return functional.plain_square_sum(t, axes)
    if t.shape.is_fully_defined() and math.prod(t.shape) <= _MOST_ENTRIES_SUMMED_IN_FLOAT64:
        t = tf.cast(t, tf.float64)
    t = tf.square(t)
    slices = size // _LONGEST_PRODUCT
    if slices > 1 and size % slices == 0:
        t = tf.add_n(tf.split(t, slices, -1))
    return tf.tensordot(t, tf.ones([t.shape[-1], 1], t.dtype), 1)


def _sliced_column_sum(t, scale_axes):
    if _many_rows(t) and math.prod(t.shape[:-1]) % 8 == 0 and scale_axes == (t.shape.rank - 1,):
        t = tf.add_n(tf.split(tf.reshape(t, [-1, t.shape[-1]]), 8))
        scale_axes = (1,)
    return functional.plain_column_sum(t, scale_axes)


def _many_rows(t):
    return t.shape.is_fully_defined() and math.prod(t.shape[:-1]) >= 512


def _over_last_dimension(function, x, axis, scale_axis):
    """Applies `function` to the rows of a ragged tensor."""
    last = x.shape.rank - 1
    for name, value in (("axis", axis), ("scale_axis", scale_axis)):
        if value not in (None, -1, last, (-1,), (last,)):
            raise ValueError(
                f"{name} must be the last axis for a ragged tensor, got {name}={value}: other axes differ in "
                "length from row to row. Use axis=-1, or x.to_tensor() and a mask."
            )
    size = x.shape[-1]
    if size is None:
        raise ValueError(
            f"x is ragged in its last dimension, over which it is to be normalized: its shape is {x.shape}. "
            "Use a ragged tensor whose last dimension is uniform."
        )

    def rows(values):
        return tf.reshape(function(tf.reshape(values, [-1, size])), tf.shape(values))

    return tf.ragged.map_flat_values(rows, x)
