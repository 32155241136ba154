"""Chooses and caches the compiled function for an input signature.

`compute` makes the signature of its inputs and looks its function up. `_in_eager_mode` and
`_in_graphs` make that function from the `Passes` of the signature; in eager mode, each pass runs as
one operation. `_with_gradient` makes the backward pass the gradient of the forward pass.
"""

import contextlib
import functools
import os
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from rmsnorm_tf.norm.arguments import NormInputs, NormSpec, check_flag, wide_dtype
from rmsnorm_tf.norm.tensorflow.passes import Passes

# The smallest input, in entries, that a graph compiles.
_ENTRIES_WORTH_COMPILING = 2**14

# How many functions are kept. TensorFlow never frees what it keeps of one that ran in eager mode.
_MOST_FUNCTIONS = 256


def set_fused(value: bool | None) -> None:
    """Overrides the `fused` argument of every layer and function of this package.

    Functions that are already traced stay as they are.

    >>> set_fused(False)  # compile nothing
    >>> set_fused(None)   # follow each layer's argument again

    Args:
        value: False, as in a forked process, never compiles, True always does, None leaves it to
            each argument.

    Raises:
        ValueError: `value` is something else.
    """
    _Process.fused = check_flag("value", value, (True, False, None))


class _Process:
    """Holds what overrides every `fused` argument in this process, or None."""

    fused: bool | None = None


if hasattr(os, "register_at_fork"):  # not on Windows
    # In a child, XLA would wait for a thread of the parent.
    os.register_at_fork(after_in_child=lambda: set_fused(False))


class _Signature(NamedTuple):
    """Identifies a function: the norm of an x, and which of x, gate, scale and offset it takes."""

    spec: NormSpec
    shape: tuple[int | None, ...]
    dtype: tf.DType
    has: tuple[bool, ...]
    is_compiled: bool
    is_eager: bool

    def inputs(self) -> NormInputs:
        """Returns the specs of the tensors that the function takes."""
        like_x = tf.TensorSpec(self.shape, self.dtype)
        weight = tf.TensorSpec(self.spec.scale_shape(self.shape), wide_dtype(self.dtype.name))
        each = (like_x, like_x, weight, weight)
        return NormInputs(*(t if has else None for t, has in zip(each, self.has, strict=True)))

    def inputs_of_backward(self) -> list[tf.TensorSpec]:
        """Returns the specs of dy, of rstd, and of the inputs."""
        sizes = [1 if a in self.spec.axes else size for a, size in enumerate(self.shape)]
        rstd = tf.TensorSpec(sizes, wide_dtype(self.dtype.name))
        return [tf.TensorSpec(self.shape, self.dtype), rstd, *self.inputs().flatten()]

    def passes(self) -> Passes:
        """Returns both passes, on the tensors that are not None."""
        return Passes(self.spec, self.inputs(), self.is_compiled)


_functions: dict[_Signature, Callable] = {}


def compute(spec: NormSpec, t: NormInputs, fused: bool | None) -> tf.Tensor:
    """Returns y."""
    is_eager = tf.executing_eagerly()
    shape = tuple(t.x.shape)
    fused = fused if _Process.fused is None else _Process.fused
    if fused is None:
        entries = 0 if is_eager else t.x.shape.num_elements() or 0
        fused = entries >= _ENTRIES_WORTH_COMPILING
    if is_eager and not fused:  # one function for all sizes of the other axes
        known = {*spec.axes, *spec.scale_axes}
        shape = tuple(size if a in known else None for a, size in enumerate(shape))
    has = tuple(each is not None for each in t)
    signature = _Signature(spec, shape, t.x.dtype, has, fused, is_eager)
    function = _functions.get(signature)
    if function is None:
        function = _in_eager_mode(signature) if is_eager else _in_graphs(signature)
        if len(_functions) < _MOST_FUNCTIONS:
            _functions[signature] = function
    return function(*t.flatten())


def _in_graphs(signature):
    """Returns a function that graphs share, with its operations and those of its gradient."""
    specs = signature.inputs().flatten()
    passes = signature.passes()
    forward = passes.forward
    backward = passes.backward
    if signature.is_compiled:
        forward = _traced(forward, specs, jit_compile=True)
        backward = _traced(backward, signature.inputs_of_backward(), jit_compile=True)
    return _traced(_with_gradient(forward, backward, passes.rstd_of_x), specs)


def _in_eager_mode(signature):
    """Returns a function of which each pass runs as one operation, if it can be kept."""
    plain = signature._replace(is_compiled=False).passes()
    if len(_functions) >= _MOST_FUNCTIONS:
        return _with_gradient(plain.forward, plain.backward, plain.rstd_of_x)
    passes = signature.passes()
    specs = signature.inputs().flatten()
    specs_of_backward = signature.inputs_of_backward()
    forward = _as_operation(passes.forward, specs, signature.is_compiled)
    backward = _as_operation(passes.backward, specs_of_backward, signature.is_compiled)

    def exact_backward(dy, rstd, x, *others):
        return plain.backward(dy, plain.rstd_of_x(rstd, x), x, *others)

    gradient = _differentiable(backward, exact_backward, specs_of_backward, specs)
    return _with_gradient(forward, gradient, lambda rstd, _: rstd)


def _differentiable(operation, function, specs, specs_of_outputs):
    """Returns an operation that computes a function, whose derivatives are operations too.

    Forward mode pauses tapes, so the derivatives come from graphs.
    """
    every_spec = [*specs, *specs_of_outputs]

    def derivative(*t):
        inputs = t[: len(specs)]
        return tf.gradients(
            function(*inputs), inputs, t[len(specs) :], unconnected_gradients="zero"
        )

    @functools.cache
    def gradient():
        operation = _as_operation(derivative, every_spec, False)
        return _differentiable(operation, derivative, every_spec, specs)

    @tf.custom_gradient
    def call(*inputs):
        with _unrecorded():
            outputs = operation(*inputs)
        return outputs, lambda *upstream: gradient()(*inputs, *upstream)

    return call


def _unrecorded():
    """Hides operations from tapes in eager mode; a gradient may be asked for in a graph."""
    return tf.init_scope() if tf.executing_eagerly() else contextlib.nullcontext()


def _as_operation(function, specs, is_compiled):
    """Returns a function that runs a graph as one operation.

    It takes a tenth of the time of calling a `tf.function`, and needs no other thread, which a
    forked process and a `tf.py_function` would wait for.
    """
    traced = _traced(function, specs, jit_compile=is_compiled or None)
    if is_compiled:
        traced = _traced(traced, specs)  # the operation itself would not be compiled
    dtypes = [t.dtype for t in traced.outputs]
    return lambda *inputs: tf.raw_ops.PartitionedCall(args=inputs, Tout=dtypes, f=traced)


def _traced(function, specs, jit_compile=None):
    with tf.init_scope():  # outside the current graph, so that any graph may call it
        traced = tf.function(
            lambda *inputs: function(*inputs), autograph=False, jit_compile=jit_compile
        )
        return traced.get_concrete_function(*specs)


def _with_gradient(forward, backward, rstd_of_x):
    """Returns a function of the tensors that returns y, and has `backward` as its gradient.

    In graphs, the forward pass says that rstd is a function of x, for second derivatives: a
    SavedModel drops gradients that are defined inside gradients.
    """

    @tf.custom_gradient
    def normalize(x, *others):
        with _unrecorded():
            y, rstd = forward(x, *others)
        rstd = rstd_of_x(rstd, x)
        return y, lambda dy: backward(dy, rstd, x, *others)

    return normalize
