"""Changes a model, and compares its outputs on random inputs before and after."""

import functools
import itertools
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from rmsnorm_tf.conversion.model.calls import (
    ON_TENSORFLOW,
    inputs_of,
    may_round_factors,
    on_inputs,
    to_numbers,
)
from rmsnorm_tf.conversion.model.layers import walk
from rmsnorm_tf.conversion.model.report import Conversion, ConversionReport
from rmsnorm_tf.conversion.model.snapshot import OtherModels, Snapshot

# Sizes of unknown axes and upper ends of integers, to try in turn: a model may need long inputs, or
# know few words.
_SIZES = (5, 32, 128)
_BOUNDS = (5, 2, 1)

# How far apart two orders of computation may be, in units of what happens if each weight is rounded
# once more.
_MARGIN = 8
_ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}

MODES = (True, False)  # values of `training`

_TRACE_AGAIN = (
    "What was traced before (a tf.function, a jax.jit) still computes LayerNorm: trace it again."
)


def convert_in_place(
    model: keras.Model,
    change: Callable[[dict[int, str]], list[Conversion]],
    modes: Collection[bool | None] = MODES,
    same: bool = True,
) -> ConversionReport:
    """Changes a model and returns the report. If anything fails, the model is as before.

    Args:
        change: Changes the model and returns the entries of the report, given why layers and
            weights must stay, by id.
        modes: The values of `training` to call the model with. Default: True and False.
        same: Whether the outputs must stay the same. Default: True. Otherwise there must be
            outputs.

    Raises:
        ValueError: The outputs differ, or the model does not run any more.
    """
    others = OtherModels(model)
    check = _Check(model, modes)
    before = Snapshot(model)
    try:
        entries = change(others.shared)
        is_changed = any(entry.converted for entry in entries)
        if is_changed:
            check.require_outputs(same)
            others.forget_compiled()
    except BaseException:
        before.restore()
        raise
    finally:
        model._clear_losses()  # those of the traced calls, which nothing can compute
    if not same:
        return ConversionReport(entries, _TRACE_AGAIN if is_changed else "")
    remark = check.remark()
    return ConversionReport(
        [replace(e, reason=e.reason + remark) if e.converted else e for e in entries]
    )


class _Check:
    """Records what a model returns for random inputs, in each mode, to compare it later."""

    def __init__(self, model, modes):
        self._model = model
        self._expected: dict[bool | None, tuple[Any, list[np.ndarray], list[float]]] = {}
        self._why_not: dict[bool | None, str] = {}
        for mode in modes:
            try:
                function = _Function(model, mode)
                inputs, outputs = _inputs_and_outputs(function)
                self._expected[mode] = inputs, outputs, self._noise(function, inputs, outputs)
            except Exception as error:  # whatever a layer raises
                self._why_not[mode] = (
                    str(error)
                    if isinstance(error, _Incomparable)
                    else f"the model does not run on random inputs: {_first_line(error)}"
                )

    def _noise(self, function, inputs, outputs):
        """Returns how far each output moves if all weights are rounded once more."""
        rounded = function(inputs, _rounding(self._model))
        return [_distance(y, n) for y, n in zip(outputs, rounded, strict=True)]

    def require_outputs(self, same):
        """Raises an error if outputs are missing, or must be the same and are not."""
        try:
            found = [self._why_different(mode) for mode in self._expected]
        except Exception as error:  # whatever a layer raises
            found = [f"The model would fail: {_first_line(error)}"]
            same = True
        why = next(filter(None, found), None)
        if same and why is not None:
            raise ValueError(
                f"{why}. So nothing was converted: every weight and layer of {self._model.name!r} "
                "is as before. A layer may read weights of another one outside its operations; "
                "convert a model without it, or one inside this."
            )

    def _why_different(self, mode):
        """Returns by how much outputs differ, if it is more than rounding explains, or None."""
        inputs, expected, noises = self._expected[mode]
        function = _Function(self._model, mode)
        actual = function(inputs)
        own = self._noise(function, inputs, actual)
        rounding = _rounding(self._model)
        for e, a, *both in zip(expected, actual, noises, own, strict=True):
            largest = np.max(np.abs(e), initial=0, where=np.isfinite(e))
            noise = max(filter(np.isfinite, both), default=0.0)  # infinite noise excuses nothing
            distance = _distance(e, a)
            if not distance <= _MARGIN * (rounding * largest + noise):
                return (
                    f"The outputs would change by {distance:.1e}, the largest being {largest:.1e}"
                )
        return None

    def remark(self):
        """Returns the suffix "; not checked ..." of report entries, or ""."""
        if not self._why_not:
            return ""
        mode, why = next(iter(self._why_not.items()))
        return f"; not checked{f' for training={mode}' if self._expected else ''}, as {why}"


class _Incomparable(Exception):
    """Tells why outputs cannot be compared."""


class _Function:
    """Calls a model as a function from arrays to arrays.

    After a call, weights, statistics and seeds are as they were.
    """

    def __init__(self, model, mode):
        self.inputs = inputs_of(model)
        self._weights = [w for w in model.weights if keras.backend.is_float_dtype(w.dtype)]
        self._run = on_inputs(lambda inputs: model(inputs, training=mode), self.inputs)
        # Also weights, as a spectral norm assigns a kernel in training, and Keras's global seed.
        self._states = list(model.variables)
        own = {id(variable.value) for variable in model.variables}
        read = self._run.get_concrete_function().variables if ON_TENSORFLOW else ()
        self._states += [variable for variable in read if id(variable) not in own]

    def __call__(self, inputs, rounding=0.0):
        """Returns the outputs, with weights that are rounded once more by this relative error."""
        kept = [keras.ops.copy(variable) for variable in self._states]
        rng = np.random.default_rng(0)
        try:
            for weight in self._weights if rounding else ():
                factors = 1 + rounding * rng.choice([-1.0, 1.0], weight.shape)
                weight.assign(weight * keras.ops.cast(factors, weight.dtype))
            return to_numbers(self._run(inputs))
        finally:
            for variable, value in zip(self._states, kept, strict=True):
                variable.assign(value)


def _inputs_and_outputs(function):
    """Returns random inputs that a model runs on, and its outputs."""
    failure = None
    for size, bound in itertools.product(_SIZES, _BOUNDS):
        rng = np.random.default_rng(0)
        draw = functools.partial(_draw, size=size, bound=bound, rng=rng)
        inputs = keras.tree.map_structure(draw, function.inputs)
        try:
            first, second = (function(inputs) for _ in range(2))
        except Exception as error:  # too short an input, an unknown word
            failure = failure or error
            continue
        if any(_distance(a, b) for a, b in zip(first, second, strict=True)):
            raise _Incomparable("the outputs are random, whatever the seeds")
        if any(np.isfinite(y).any() for y in first):
            return inputs, first
        failure = _Incomparable("the outputs for random inputs are not finite")
    raise failure


def _draw(symbolic, size, bound, rng):
    """Returns a random value of a symbolic input, with a batch of three."""
    unknown = [3] + [size] * (len(symbolic.shape) - 1)
    shape = [u if n is None else n for n, u in zip(symbolic.shape, unknown, strict=False)]
    if symbolic.dtype == "string":
        value = rng.choice(["a", "b c", "1"], shape)
    elif symbolic.dtype == "bool":
        value = rng.random(shape) < 0.5
    elif keras.backend.is_float_dtype(symbolic.dtype) and bound == _BOUNDS[0]:
        value = rng.normal(size=shape)
    else:
        value = rng.uniform(0, bound, shape)
    return keras.ops.convert_to_tensor(value, symbolic.dtype)


def _rounding(model):
    """Returns the relative error of the narrowest dtype that a model computes in."""
    own = {**_ROUNDING, "float32": _ROUNDING["float16" if may_round_factors() else "float32"]}
    return max((own.get(layer.compute_dtype, 0) for _, _, layer in walk(model)), default=0)


def _distance(a, b):
    """Returns the largest difference: infinity if shapes or what is not finite differ."""
    odd = ~np.isfinite(a)
    if a.shape != b.shape or not np.array_equal(a[odd], b[~np.isfinite(b)], equal_nan=True):
        return np.inf
    return np.max(np.abs(a - b), initial=0, where=~odd & np.isfinite(b))


def _first_line(error):
    """Returns the type and the first line of an error, without what Keras adds to it."""
    lines = re.sub(r"^Exception encountered when calling .*|\x1b\[\d+m", "", str(error)).split("\n")
    return f"{type(error).__name__}: {next(filter(None, lines), '')[:200].rstrip('.')}"
