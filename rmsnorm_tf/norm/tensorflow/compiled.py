"""What runs for which inputs: operations one by one, a function of a graph, or a program that XLA compiled."""

import collections
import contextlib
import dataclasses
import functools
import math
import os
import threading
from collections.abc import Callable, Hashable

import tensorflow as tf

from rmsnorm_tf.norm.arguments import NormSpec, Tensors, check_flag, wide_dtype
from rmsnorm_tf.norm.tensorflow.passes import Passes

# The smallest input, in entries, that a graph compiles.
_ENTRIES_WORTH_COMPILING = 2**14

# Compiling takes as long as many small calls, so eager calls compile few shapes, and only recurring ones. TensorFlow
# never frees a compiled program, so `fused=True` has a limit too.
_CALLS_BEFORE_COMPILING = 3
_MOST_RECURRING_SHAPES = 32
_MOST_SHAPES = 128
_MOST_SHAPES_COUNTED = 1024

# How many functions of graphs stay in memory. The one that was not used for longest is dropped and, if need be, made
# again.
_MOST_FUNCTIONS = 128


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


@dataclasses.dataclass(frozen=True)
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

    @classmethod
    def of(cls, spec: NormSpec, t: Tensors) -> "_Signature":
        return cls(spec, tuple(t.x.shape), t.x.dtype, tuple(each is not None for each in t))

    def tensors(self) -> Tensors:
        """Returns the specs of the tensors that the function takes."""
        like_x = tf.TensorSpec(self.shape, self.dtype)
        weight = tf.TensorSpec(self.spec.scale_shape(self.shape), wide_dtype(self.dtype.name))
        each = (like_x, like_x, weight, weight)
        return Tensors(*(spec if has else None for spec, has in zip(each, self.has, strict=True)))

    def u(self) -> tf.TensorSpec:
        """Returns the spec of u."""
        sizes = [1 if a in self.spec.axes else size for a, size in enumerate(self.shape)]
        return tf.TensorSpec(sizes, wide_dtype(self.dtype.name))


class _Cache:
    """Functions by what they are made for. Threads that need the same one wait until it is made once."""

    def __init__(self):
        self._functions: collections.OrderedDict[Hashable, Callable] = collections.OrderedDict()
        self._eager: dict[_Signature, Callable] = {}  # of the chosen shapes
        self._calls: collections.Counter[_Signature] = collections.Counter()
        self._chosen: set[_Signature] = set()
        self.lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], Callable]) -> Callable:
        """Returns the function of a key, made by `make` if it is not there."""
        with self.lock:
            if key not in self._functions:
                # Outside the current graph and its tapes, so that any graph may call it.
                with tf.init_scope():
                    self._functions[key] = make()
                while len(self._functions) > _MOST_FUNCTIONS:
                    self._functions.popitem(last=False)
            self._functions.move_to_end(key)
            return self._functions[key]

    def get_eager(self, signature: _Signature, make: Callable[[], Callable]) -> Callable:
        """Returns the compiled function of a chosen shape. None is dropped: TensorFlow would keep its program."""
        with self.lock:
            if signature not in self._eager:
                self._eager[signature] = make()
            return self._eager[signature]

    def admits(self, signature: _Signature, calls: int, most: int) -> bool:
        """Counts an eager call. Returns whether to compile its shape: after some calls, for at most `most` shapes."""
        with self.lock:
            if signature in self._chosen:
                return True
            if len(self._calls) >= _MOST_SHAPES_COUNTED:
                self._calls.clear()
            self._calls[signature] += 1
            if self._calls[signature] < calls or len(self._chosen) >= most:
                return False
            self._chosen.add(signature)
            return True


_switch = _Switch()
_cache = _Cache()


def _after_fork():
    _switch.is_forked = True
    _cache.lock = threading.RLock()  # another thread may have held it


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def compute(spec: NormSpec, t: Tensors, fused: bool | None) -> tf.Tensor:
    """Returns y, computed in the way that is best for these inputs."""
    signature = _Signature.of(spec, t)
    is_compiled = _is_compiled(signature, fused)
    if not tf.executing_eagerly():
        function = _function_of_a_graph(signature, is_compiled)
    elif is_compiled:
        function = _cache.get_eager(signature, lambda: _differentiable_xla(signature))
    else:
        function = _differentiable_plain(spec, signature.has)
    return function(*t.flat())


def _is_compiled(signature, fused):
    fused = fused if _switch.value is None else _switch.value
    if fused is False or _switch.is_forked:
        return False
    if tf.executing_eagerly():
        limits = (1, _MOST_SHAPES) if fused else (_CALLS_BEFORE_COMPILING, _MOST_RECURRING_SHAPES)
        return _cache.admits(signature, *limits)
    if fused:
        return True
    return None not in signature.shape and math.prod(signature.shape) >= _ENTRIES_WORTH_COMPILING


def _function_of_a_graph(signature, is_compiled):
    """Returns a function that a graph calls, so that graphs share its operations and those of its gradient."""

    def make():
        if is_compiled:
            function = _differentiable_xla(signature)
        else:
            function = _differentiable_plain(signature.spec, signature.has)
        traced = tf.function(lambda *inputs: function(*inputs), autograph=False)
        return traced.get_concrete_function(*signature.tensors().flat())

    return _cache.get((signature, is_compiled), make)


@functools.lru_cache(maxsize=1024)
def _differentiable_plain(spec, has):
    passes = Passes(spec)
    pattern = Tensors(*(each or None for each in has))
    return _differentiable(passes, *_flat(passes, pattern))


def _differentiable_xla(signature):
    passes, pattern = Passes(signature.spec, in_xla=True), signature.tensors()
    forward, backward = _flat(passes, pattern)
    return _differentiable(
        Passes(signature.spec),
        _compiled(forward, *pattern.flat()),
        _compiled(backward, pattern.x, signature.u(), *pattern.flat()),
    )


def _flat(passes, pattern):
    """Returns both passes as functions of tensors alone."""

    def forward(*inputs):
        return passes.forward(pattern.like(inputs))

    def backward(dy, u, *inputs):
        return passes.backward(dy, u, pattern.like(inputs)).flat()

    return forward, backward


def _compiled(function, *specs):
    """Returns the function, compiled for these specs when it is first called."""
    traced = tf.function(function, jit_compile=True, autograph=False)
    programs = []

    def call(*inputs):
        if not programs:
            with _cache.lock, tf.init_scope():
                programs.append(traced.get_concrete_function(*specs))
        return programs[0](*inputs)

    return call


def _differentiable(passes, forward, backward):
    """Returns a function of the tensors that returns y, and has `backward` as its gradient.

    Tapes record each pass as one operation. u is recorded as a function of x, for second derivatives. In a graph this
    happens in the forward pass, because a SavedModel drops gradients defined inside gradients.
    """

    @tf.custom_gradient
    def normalize(x, *others):
        is_eager = tf.executing_eagerly()
        with tf.init_scope() if is_eager else contextlib.nullcontext():  # without tapes
            y, u = forward(x, *others)
        u = u if is_eager else of_x(tf.stop_gradient(u), x)

        def gradient(dy):
            return backward(dy, of_x(u, x) if is_eager else u, x, *others)

        return y, gradient

    @tf.custom_gradient
    def of_x(u, x):
        def gradient(du):
            return None, passes.gradient_of_u(du, u, x)

        return tf.identity(u), gradient

    return normalize
