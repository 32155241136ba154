"""Functions of graphs that compute a norm, some of them compiled by XLA, and which one computes which inputs."""

import contextlib
import functools
import math
import os
import threading
from dataclasses import dataclass

import tensorflow as tf

from rmsnorm_tf.norm.arguments import NormSpec, Tensors, check_flag, wide_dtype
from rmsnorm_tf.norm.tensorflow.passes import Passes

# The smallest input, in entries, that a graph compiles.
_ENTRIES_WORTH_COMPILING = 2**14

# How many functions stay in memory.
_MOST_FUNCTIONS = 128

# How many shapes eager calls compile: TensorFlow never frees a compiled program.
_MOST_COMPILED_SHAPES = 128


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
    _process.fused = check_flag("value", value, (True, False, None))


class _Process:
    """The state of this process.

    Attributes:
        fused: Overrides every `fused` argument: True, False, or None for nothing.
        is_forked: Whether this process was forked.
        compiled: The signatures that eager calls have compiled.
    """

    def __init__(self):
        given = os.environ.get("RMSNORM_TF_FUSED", "")
        values = {"": None, "0": False, "1": True, "false": False, "true": True}
        if given.lower() not in values:
            raise ValueError(f"The environment variable RMSNORM_TF_FUSED must be 0, 1 or empty, got {given!r}.")
        self.fused = values[given.lower()]
        self.is_forked = False
        self.compiled: set[_Signature] = set()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=lambda: setattr(self, "is_forked", True))


_process = _Process()


@dataclass(frozen=True)
class _Signature:
    """What a function is made for.

    Attributes:
        spec: What it normalizes.
        shape: The shape of x.
        dtype: The dtype of x.
        has: Which of x, gate, scale and offset it takes.
    """

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

    def rstd(self) -> tf.TensorSpec:
        """Returns the spec of rstd."""
        sizes = [1 if a in self.spec.axes else size for a, size in enumerate(self.shape)]
        return tf.TensorSpec(sizes, wide_dtype(self.dtype.name))

    def of_any_batch(self) -> "_Signature":
        """Returns the signature of a function for all sizes of the axes that have neither a statistic nor a weight."""
        known = {*self.spec.axes, *self.spec.scale_axes}
        shape = tuple(size if a in known else None for a, size in enumerate(self.shape))
        return _Signature(self.spec, shape, self.dtype, self.has)


def compute(spec: NormSpec, t: Tensors, fused: bool | None) -> tf.Tensor:
    """Returns y, computed in the way that is best for these inputs."""
    signature = _Signature(spec, tuple(t.x.shape), t.x.dtype, tuple(each is not None for each in t))
    is_eager = tf.executing_eagerly()
    if is_eager and _may_hang():
        return _differentiable(signature)(*t.flatten())
    is_compiled = _is_compiled(signature, fused, is_eager)
    if is_eager:
        signature = signature if is_compiled else signature.of_any_batch()
        return _differentiable_functions(signature, is_compiled)(*t.flatten())
    return _function(signature, is_compiled)(*t.flatten())


def _may_hang():
    """Whether a function of a graph may wait for a thread of TensorFlow that never comes.

    In a forked process there is none. A `tf.py_function` runs in one itself, and others may keep the rest busy.
    """
    return _process.is_forked or isinstance(threading.current_thread(), threading._DummyThread)


def _is_compiled(signature, fused, is_eager):
    fused = fused if _process.fused is None else _process.fused
    if fused is False or _process.is_forked:
        return False
    if is_eager:
        return fused is True and _may_compile(signature)
    return fused or (None not in signature.shape and math.prod(signature.shape) >= _ENTRIES_WORTH_COMPILING)


def _may_compile(signature):
    if len(_process.compiled) < _MOST_COMPILED_SHAPES:
        _process.compiled.add(signature)
    return signature in _process.compiled


@functools.lru_cache(maxsize=_MOST_FUNCTIONS)
def _function(signature, is_compiled):
    """Returns a function that all graphs call, so that they share its operations and those of its gradient."""
    function = _differentiable_functions(signature, True) if is_compiled else _differentiable(signature)
    with tf.init_scope():  # outside the current graph, so that any graph may call it
        traced = tf.function(lambda *inputs: function(*inputs), autograph=False)
        return traced.get_concrete_function(*signature.tensors().flatten())


def _differentiable(signature):
    passes = Passes(signature.spec)
    return _with_gradient(passes, *_of_flat_tensors(passes, signature.tensors()))


@functools.lru_cache(maxsize=_MOST_FUNCTIONS)
def _differentiable_functions(signature, is_compiled):
    """The same, of which each pass is a function of a graph; eager calls use it."""
    pattern = signature.tensors()
    forward, backward = _of_flat_tensors(Passes(signature.spec, in_xla=is_compiled), pattern)
    traced = functools.partial(tf.function, jit_compile=is_compiled or None, autograph=False)
    with tf.init_scope():
        return _with_gradient(
            Passes(signature.spec),
            traced(forward).get_concrete_function(*pattern.flatten()),
            traced(backward).get_concrete_function(pattern.x, signature.rstd(), *pattern.flatten()),
        )


def _of_flat_tensors(passes, pattern):
    """Returns both passes as functions of the tensors that are not None."""

    def forward(*inputs):
        return passes.forward(pattern.unflatten(inputs))

    def backward(dy, rstd, *inputs):
        return passes.backward(dy, rstd, pattern.unflatten(inputs)).flatten()

    return forward, backward


def _with_gradient(passes, forward, backward):
    """Returns a function of the tensors that returns y, and has `backward` as its gradient.

    Tapes record each pass as one operation. rstd is recorded as a function of x, for second derivatives. In a graph
    this happens in the forward pass, because a SavedModel drops gradients that are defined inside gradients.
    """

    @tf.custom_gradient
    def normalize(x, *others):
        is_eager = tf.executing_eagerly()
        with tf.init_scope() if is_eager else contextlib.nullcontext():  # without tapes
            y, rstd = forward(x, *others)
        rstd = rstd if is_eager else of_x(tf.stop_gradient(rstd), x)
        return y, lambda dy: backward(dy, of_x(rstd, x) if is_eager else rstd, x, *others)

    @tf.custom_gradient
    def of_x(rstd, x):
        return tf.identity(rstd), lambda drstd: (None, passes.gradient_of_rstd(drstd, rstd, x))

    return normalize
