"""Functions of graphs that compute a norm, some of them compiled by XLA, and which one computes which inputs."""

import contextlib
import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass

import tensorflow as tf

from rmsnorm_tf.norm.arguments import NormSpec, Tensors, check_flag, wide_dtype
from rmsnorm_tf.norm.tensorflow.passes import Passes

# The smallest input, in entries, that a graph compiles.
_ENTRIES_WORTH_COMPILING = 2**14

# How many functions graphs share. Those that were not used for longest go.
_MOST_FUNCTIONS = 128

# For how many signatures eager calls have functions. TensorFlow never frees what it keeps of them.
_MOST_EAGER_SIGNATURES = 128

# What `tf.custom_gradient` asks of a gradient, and would read from its code in every call.
_SIGNATURE_OF_GRADIENTS = inspect.signature(lambda *upstream: None)


def set_fused(value: bool | None) -> None:
    """Overrides the `fused` argument of every layer and function of this package.

    The environment variable `RMSNORM_TF_FUSED`, 0 or 1, does the same from the start. Functions
    that are already traced stay as they are.

    >>> set_fused(False)  # compile nothing
    >>> set_fused(None)   # follow each layer's argument again

    Args: value: False never compiles, True always does except in a forked process, None leaves it
        to each argument.

    Raises:
        ValueError: `value` is something else.
    """
    _process.fused = check_flag("value", value, (True, False, None))


class _Process:
    """The state of this process: what overrides every `fused` argument, or None; what eager calls run."""

    def __init__(self):
        given = os.environ.get("RMSNORM_TF_FUSED", "")
        values = {"": None, "0": False, "1": True, "false": False, "true": True}
        if given.lower() not in values:
            raise ValueError(
                f"The environment variable RMSNORM_TF_FUSED must be 0, 1 or empty, got {given!r}."
            )
        self.fused = values[given.lower()]
        self.is_forked = False  # XLA would wait there for a thread of the parent
        self.eager: dict[tuple[_Signature, bool], Callable] = {}
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=lambda: setattr(self, "is_forked", True))


_process = _Process()


@dataclass(frozen=True)
class _Signature:
    """What a function is made for: a norm of an x, and which of x, gate, scale and offset it takes."""

    spec: NormSpec
    shape: tuple[int | None, ...]
    dtype: tf.DType
    has: tuple[bool, ...]

    def tensors(self) -> Tensors:
        """Returns the specs of the tensors that the function takes."""
        like_x = tf.TensorSpec(self.shape, self.dtype)
        weight = tf.TensorSpec(self.spec.scale_shape(self.shape), wide_dtype(self.dtype.name))
        each = (like_x, like_x, weight, weight)
        return Tensors(*(spec if has else None for spec, has in zip(each, self.has, strict=True)))

    def inputs_of_backward(self) -> list[tf.TensorSpec]:
        """Returns the specs of dy, of rstd, and of the tensors that the forward pass takes."""
        sizes = [1 if a in self.spec.axes else size for a, size in enumerate(self.shape)]
        rstd = tf.TensorSpec(sizes, wide_dtype(self.dtype.name))
        return [tf.TensorSpec(self.shape, self.dtype), rstd, *self.tensors().flatten()]

    def of_any_batch(self) -> "_Signature":
        """Returns the signature of a function for all sizes of the axes that have neither a statistic nor a weight."""
        known = {*self.spec.axes, *self.spec.scale_axes}
        shape = tuple(size if a in known else None for a, size in enumerate(self.shape))
        return _Signature(self.spec, shape, self.dtype, self.has)


def compute(spec: NormSpec, t: Tensors, fused: bool | None) -> tf.Tensor:
    """Returns y, computed in the way that is best for these inputs."""
    signature = _Signature(spec, tuple(t.x.shape), t.x.dtype, tuple(each is not None for each in t))
    fused = fused if _process.fused is None else _process.fused
    if _process.is_forked:
        fused = False
    if tf.executing_eagerly():
        return _in_eager_mode(signature, fused is True)(*t.flatten())
    if fused is None:
        fused = (t.x.shape.num_elements() or 0) >= _ENTRIES_WORTH_COMPILING
    return _in_graphs(signature, fused)(*t.flatten())


@functools.lru_cache(maxsize=_MOST_FUNCTIONS)
def _in_graphs(signature, is_compiled):
    """Returns a function that all graphs call, so that they share its operations and those of its gradient."""
    forward, backward = _passes(signature, is_compiled)
    if is_compiled:
        forward = _traced(forward, signature.tensors().flatten(), jit_compile=True)
        backward = _traced(backward, signature.inputs_of_backward(), jit_compile=True)
    return _traced(
        _with_gradient(Passes(signature.spec), forward, backward), signature.tensors().flatten()
    )


@functools.lru_cache(maxsize=1024)
def _in_eager_mode(signature, is_compiled):
    """Returns a function for eager calls, of which each pass runs as one operation, except beyond the limit."""
    signature = signature if is_compiled else signature.of_any_batch()
    key = signature, is_compiled
    if key not in _process.eager and len(_process.eager) < _MOST_EAGER_SIGNATURES:
        _process.eager[key] = _of_operations(signature, is_compiled)
    return _process.eager.get(key) or _with_gradient(
        Passes(signature.spec), *_passes(signature, False)
    )


def _of_operations(signature, is_compiled):
    forward, backward = _passes(signature, is_compiled)
    forward = _as_operation(forward, signature.tensors().flatten(), is_compiled)
    backward = _as_operation(backward, signature.inputs_of_backward(), is_compiled)
    plain = _passes(signature, False)[1]
    rstd_of_x = _rstd_of_x(Passes(signature.spec))
    backward = _differentiable(
        lambda dy, rstd, x, *others: plain(dy, rstd_of_x(rstd, x), x, *others),
        signature.inputs_of_backward(),
        backward,
    )

    @tf.custom_gradient
    def normalize(*inputs):
        with _unrecorded():
            y, rstd = forward(*inputs)
        return y, _with_signature(lambda dy: backward(dy, rstd, *inputs))

    return normalize


def _with_signature(gradient):
    gradient.__signature__ = _SIGNATURE_OF_GRADIENTS
    return gradient


def _differentiable(function, specs, operation=None):
    """Returns an operation that computes a function of tensors, whose derivatives of all orders are operations too."""
    operation = operation or _as_operation(function, specs)

    @functools.cache
    def gradient():
        count = len(specs)
        outputs = [tf.TensorSpec(t.shape, t.dtype) for t in _traced(function, specs).outputs]
        return _differentiable(
            lambda *t: tf.gradients(
                function(*t[:count]), t[:count], t[count:], unconnected_gradients="zero"
            ),
            [*specs, *outputs],
        )

    @tf.custom_gradient
    def call(*inputs):
        with _unrecorded():
            outputs = operation(*inputs)
        return outputs, _with_signature(lambda *upstream: gradient()(*inputs, *upstream))

    return call


def _as_operation(function, specs, is_compiled=False):
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


def _passes(signature, is_compiled):
    """Returns both passes as functions of the tensors that are not None."""
    passes = Passes(signature.spec, in_xla=is_compiled)
    pattern = signature.tensors()

    def forward(*inputs):
        return passes.forward(pattern.unflatten(inputs))

    def backward(dy, rstd, *inputs):
        return passes.backward(dy, rstd, pattern.unflatten(inputs)).flatten()

    return forward, backward


def _with_gradient(passes, forward, backward):
    """Returns a function of the tensors that returns y, and has `backward` as its gradient.

    rstd is a function of x, for second derivatives. The forward pass says so, because a SavedModel
    drops gradients that are defined inside gradients.
    """
    rstd_of_x = _rstd_of_x(passes)

    @tf.custom_gradient
    def normalize(x, *others):
        with _unrecorded():
            y, rstd = forward(x, *others)
        rstd = rstd_of_x(tf.stop_gradient(rstd), x)
        return y, lambda dy: backward(dy, rstd, x, *others)

    return normalize


def _unrecorded():
    """Hides operations from tapes, in eager mode; a gradient recorded there may be asked for in a graph."""
    return tf.init_scope() if tf.executing_eagerly() else contextlib.nullcontext()


def _rstd_of_x(passes):
    """Returns a function of rstd and x that returns rstd, with the gradient that rstd has as a function of x."""

    @tf.custom_gradient
    def rstd_of_x(rstd, x):
        return tf.identity(rstd), lambda drstd: (None, passes.gradient_of_rstd(drstd, rstd, x))

    return rstd_of_x
