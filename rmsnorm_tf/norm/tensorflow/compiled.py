"""Both passes compiled by XLA, a cache of them, and which inputs are worth compiling."""

import collections
import functools
import math
import os
from collections.abc import Callable

import tensorflow as tf

from rmsnorm_tf.norm.arguments import Equation, check_flag
from rmsnorm_tf.norm.tensorflow import gradient as _gradient
from rmsnorm_tf.norm.tensorflow.computation import Computation, Tensors
from rmsnorm_tf.norm.tensorflow.differentiable import differentiable

# The smallest size, in entries, that a graph compiles.
_ENTRIES_WORTH_COMPILING = 2**14

# Up to this size, which fits the CPU's cache, a sum in float64 is cheaper than a check of a float32 sum for overflow.
_MOST_ENTRIES_SUMMED_IN_FLOAT64 = 2**18

# Rows at least twice as long are cut into slices. The slices are added first, and the product with ones comes after.
_LONGEST_PRODUCT = 2048

# Compiling takes as long as many small calls, so eager calls compile few shapes, and only recurring ones.
_SIGHTINGS_BEFORE_COMPILING = 3
_MOST_SHAPES_COMPILED_EAGERLY = 32
_MOST_SHAPES_COUNTED = 1024

Compute = Callable[..., Tensors]


def set_fused(value: bool | None) -> None:
    """Overrides the `fused` argument of every layer and function of this package.

    The environment variable `RMSNORM_TF_FUSED`, 0 or 1, does the same from the start. Functions that are already traced
    stay as they are.

    >>> set_fused(False)  # compile nothing
    >>> set_fused(None)   # follow each layer's argument again

    Args:
        value: False never compiles, True always does except in a forked process, None leaves it to each argument.

    Raises:
        ValueError: `value` is something else.
    """
    _switch.value = check_flag("value", value, (True, False, None))


class _Switch:
    """Overrides every `fused` argument.

    Attributes:
        value: True, False, or None for nothing.
        is_forked: Whether this process was forked. Nothing is compiled there: XLA of TensorFlow 2.20 would wait for a
            thread of the parent.
    """

    def __init__(self):
        given = os.environ.get("RMSNORM_TF_FUSED", "")
        values = {"": None, "0": False, "1": True, "false": False, "true": True}
        if given.lower() not in values:
            raise ValueError(f"The environment variable RMSNORM_TF_FUSED must be 0, 1 or empty, got {given!r}.")
        self.value = values[given.lower()]
        self.is_forked = False
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self._note_fork)

    def _note_fork(self):
        self.is_forked = True


class _Cache:
    """The compiled functions, and how often eager calls have seen which shape."""

    def __init__(self):
        self._compiled: dict[tuple, Compute] = {}
        self._sightings: collections.Counter[tuple] = collections.Counter()
        self._chosen = 0  # shapes that eager calls compiled without being asked to

    def get(self, computation: Computation, equation: Equation, inputs: Tensors, fused: bool | None) -> Compute | None:
        """Returns the function for inputs like these, or None where plain operations are the better choice."""
        x = inputs[0]
        if fused is None and not x.shape.is_fully_defined():
            return None
        key = (computation, equation, tuple(x.shape), x.dtype, len(inputs))
        if fused is None and not self._pays(key, x):
            return None
        if key not in self._compiled:
            self._compiled[key] = _compile(computation, equation, x, len(inputs) - computation.tensors)
        return self._compiled[key]

    def _pays(self, key, x):
        if not tf.executing_eagerly():
            return math.prod(x.shape) >= _ENTRIES_WORTH_COMPILING
        if key in self._compiled:
            return True
        if len(self._sightings) >= _MOST_SHAPES_COUNTED:
            self._sightings.clear()
        self._sightings[key] += 1
        if self._sightings[key] < _SIGHTINGS_BEFORE_COMPILING or self._chosen >= _MOST_SHAPES_COMPILED_EAGERLY:
            return False
        self._chosen += 1
        return True


_switch = _Switch()
_cache = _Cache()


def implementation(computation: Computation, equation: Equation, inputs: Tensors, fused: bool | None) -> Compute:
    """Returns the function that computes the results for these inputs: compiled, or made of plain operations."""
    fused = fused if _switch.value is None else _switch.value
    plain = fused is False or _switch.is_forked
    compiled = None if plain else _cache.get(computation, equation, inputs, fused)
    return compiled or _plain(computation, equation)


@functools.lru_cache(maxsize=1024)
def _plain(computation, equation):
    forward = functools.partial(computation.forward, equation)
    backward = functools.partial(computation.backward, equation)
    return differentiable(computation, equation, forward, backward)


def _compile(computation, equation, x, weights):
    """Compiles both passes for tensors like x and this number of weights."""
    for_forward, for_backward = {}, {}
    if _gradient.sums_as_products():
        for_forward = {"square_sum": _matmul_square_sum}
        for_backward = {"column_sum": _sliced_column_sum}

    def forward(*inputs):
        return computation.forward(equation, *inputs, **for_forward)

    def backward(*inputs):
        return computation.backward(equation, *inputs, **for_backward)

    wide = _gradient.wide_dtype(x.dtype)
    like_x = tf.TensorSpec(x.shape, x.dtype)
    like_u = tf.TensorSpec([1 if a in equation.axes else size for a, size in enumerate(x.shape)], wide)
    inputs = [like_x] * computation.tensors + [tf.TensorSpec(equation.scale_shape(x.shape), wide)] * weights
    outputs = [like_x] * computation.results + [like_u]
    return differentiable(
        computation,
        equation,
        _trace(forward, *inputs),
        _trace(backward, *outputs, *computation.backward_inputs(inputs, outputs)),
    )


def _trace(function, *specs):
    """Returns the function traced and compiled for inputs like these, which is the cheapest to call."""
    # Trace outside the current graph: inside XLA, TensorFlow picks other operations, and cannot differentiate them all.
    with tf.init_scope():
        return tf.function(function, jit_compile=True, autograph=False).get_concrete_function(*specs)


# On a CPU, XLA vectorizes matrix products and elementwise sums, but neither sums along a row nor long sums along a
# column. So squares are summed along rows by a matrix product with ones, and columns by adding eight slices first.


def _matmul_square_sum(t, axes):
    size = t.shape[-1]
    if axes != (t.shape.rank - 1,) or size is None:
        return _gradient.plain_square_sum(t, axes)
    if t.shape.is_fully_defined() and math.prod(t.shape) <= _MOST_ENTRIES_SUMMED_IN_FLOAT64:
        t = tf.cast(t, tf.float64)
    t = tf.square(t)
    slices = size // _LONGEST_PRODUCT
    if slices > 1 and size % slices == 0:
        t = tf.add_n(tf.split(t, slices, -1))
    return tf.tensordot(t, tf.ones([t.shape[-1], 1], t.dtype), 1)


def _sliced_column_sum(t, scale_axes):
    if _has_many_rows(t) and math.prod(t.shape[:-1]) % 8 == 0 and scale_axes == (t.shape.rank - 1,):
        t = tf.add_n(tf.split(tf.reshape(t, [-1, t.shape[-1]]), 8))
        scale_axes = (1,)
    return _gradient.plain_column_sum(t, scale_axes)


def _has_many_rows(t):
    return t.shape.is_fully_defined() and math.prod(t.shape[:-1]) >= 512
