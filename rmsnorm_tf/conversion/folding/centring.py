"""Decides which norms of a model can take a centred input, and which changes centre it.

With C t = t - mean(t), LayerNorm is RMSNorm of the centred input: LN(t) = RMS(C t). So a tensor t
that LayerNorm reads may be replaced by C t, if nobody else sees the difference:

1. A constant added to all channels of t must be *invisible*: whoever takes t is a LayerNorm, or
   carries the constant on into tensors where it is invisible too, as a residual sum does. This is
   found from the outputs backwards.
2. There must be a way to centre t. Where t is linear in weights along its channels, centring the
   weights does it. A sum is centred if its operands are. Where no weights can do it, the mean of a
   layer's output may be subtracted: a *cut*. This is found from the inputs onwards.

A cut costs about what it saves at one norm, so it must serve several norms.
"""

import functools
import operator
from collections import Counter
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from rmsnorm_tf.conversion.folding.layer_scale import gain_to_absorb
from rmsnorm_tf.conversion.folding.reasons import Reasons, why_fixed
from rmsnorm_tf.conversion.folding.rules import sources, targets
from rmsnorm_tf.conversion.folding.trace import Trace

# How many norms each explicit subtraction must serve.
NORMS_PER_CUT = 3


@dataclass(frozen=True)
class Plan:
    """What centres a tensor.

    Attributes: weights: The resources to centre, each with the axis. gains: What to multiply into
        weights beforehand: the weight's resource and axis, and the gain's resource. cuts: The ids
        of the layers from whose outputs to subtract the mean.
    """

    weights: frozenset[tuple[str, int]] = frozenset()
    gains: frozenset[tuple[str, int, str]] = frozenset()
    cuts: frozenset[int] = frozenset()

    def __or__(self, other: "Plan") -> "Plan":
        return Plan(self.weights | other.weights, self.gains | other.gains, self.cuts | other.cuts)


class Centring:
    """What can be centred in a traced model, given why layers and variables must stay, and their names, by id."""

    def __init__(self, traced: Trace, fixed: dict[int, str], names: dict[int, str]) -> None:
        self._traced = traced
        self._fixed = fixed
        self._why_fixed = lambda resource: why_fixed(traced.variables[resource], fixed, names)
        self._names = names
        self._reasons = Reasons(traced, names)
        self._readers: dict[tuple[str, int], tf.Operation | None] = {}
        self._plans: dict[tuple[str, int], Plan | str] = {}
        self._why_cut: dict[int, str] = {}
        for operation in reversed(traced.operations):
            for tensor in operation.outputs:
                for axis in self._axes(tensor):
                    self._find_reader(tensor, axis)
        for operation in traced.operations:
            for number, tensor in enumerate(operation.outputs):
                for axis in self._axes(tensor):
                    self._plans[tensor.name, axis] = self._plan(operation, number, axis)

    def plans(self, norms: list[keras.Layer]) -> dict[int, Plan | str]:
        """Returns, for the id of each norm, what centres all its inputs, or why nothing does or it does not pay."""
        plans = {id(norm): self._plan_for(norm) for norm in norms}
        cutting = {
            key: plan.cuts for key, plan in plans.items() if isinstance(plan, Plan) and plan.cuts
        }
        paying = cutting
        for _ in cutting:  # again, as a norm that stays is served no more
            served = Counter(cut for cuts in paying.values() for cut in cuts)
            paying = {
                key: cuts
                for key, cuts in paying.items()
                if min(served[cut] for cut in cuts) >= NORMS_PER_CUT
            }
        return plans | {
            key: self._reason_for(cuts) for key, cuts in cutting.items() if key not in paying
        }

    def _plan_for(self, norm):
        tensors = self._traced.norms.get(id(norm))
        if not tensors:
            return f"the model does not call {norm.name}"
        if any(t is None for t in tensors):
            return (
                f"{norm.name} is called in a loop or in another function, which is not looked into"
            )
        why = f"{norm.name} reads numbers that are not floating-point, or of unknown rank"
        return _together([self._plans.get((t.name, -1), why) for t in tensors])

    def _reason_for(self, cuts):
        return next(why for cut, why in self._why_cut.items() if cut in cuts)

    def _axes(self, tensor):
        if tensor.dtype == tf.resource:
            variable = self._traced.variables.get(tensor.name)
            return range(-len(variable.shape), 0) if variable is not None else ()
        return range(-(tensor.shape.rank or 0), 0) if tensor.dtype.is_floating else ()

    def _find_reader(self, tensor, axis):
        """Finds the operation that sees a constant that is added along an axis of a tensor:

        None for an output.
        """
        for operation, position in self._traced.consumers[tensor.name]:
            is_norm = (
                bool(operation.outputs) and operation.outputs[0].name in self._traced.normalized
            )
            if axis == -1 and is_norm:
                continue
            reached = (
                targets(operation, position, axis) if operation.outputs and not is_norm else None
            )
            keys = [(operation.outputs[number].name, a) for number, a in reached or []]
            if reached is None:
                self._readers[tensor.name, axis] = operation
            elif seen := [key for key in keys if key in self._readers]:
                self._readers[tensor.name, axis] = self._readers[seen[0]]
            else:
                continue
            return
        if tensor.name in self._traced.outputs:
            self._readers[tensor.name, axis] = None

    def _plan(self, operation, number, axis):
        """Returns what centres an output along an axis, or why nothing does."""
        tensor = operation.outputs[number]
        plan = self._plan_by_weights(operation, number, axis)
        if plan != Plan() and (tensor.name, axis) in self._readers:
            return self._reasons.visible(tensor, self._readers[tensor.name, axis])
        if isinstance(plan, str) or len(plan.cuts) > 1:
            layer = self._layer_to_cut(tensor, axis)
            if layer is not None:
                self._why_cut.setdefault(
                    id(layer), plan if isinstance(plan, str) else self._reason_for(plan.cuts)
                )
                return Plan(cuts=frozenset({id(layer)}))
        return plan

    def _plan_by_weights(self, operation, number, axis):
        tensor = operation.outputs[number]
        if tensor.dtype == tf.resource:
            return self._why_fixed(tensor.name) or Plan(frozenset({(tensor.name, axis)}))
        if tensor.name in self._traced.normalized:
            return Plan() if axis == -1 else self._reasons.not_affine(operation)
        if operation.type == "Const" and _is_zero(tensor):
            return Plan()
        found = sources(operation, axis, number)
        if found is None:
            absorbed = gain_to_absorb(self._traced, operation, axis, self._readers)
            return (
                self._plan_by_gain(*absorbed) if absorbed else self._reasons.not_affine(operation)
            )
        return _together([self._plan_of_input(operation, operation.inputs[i], a) for i, a in found])

    def _plan_by_gain(self, resource, weights):
        gain = self._traced.variables[resource]
        if not gain.numpy().all():
            return f"{self._names[id(gain)]} multiplies by 0, which weights would not recover from in training"
        why_not = filter(None, map(self._why_fixed, (resource, *(name for name, _ in weights))))
        return next(why_not, None) or Plan(
            weights, frozenset((*weight, resource) for weight in weights)
        )

    def _plan_of_input(self, operation, tensor, axis):
        """Returns what centres an input of an operation.

        One without the axis adds the same number to all channels.
        """
        plan = self._plans.get((tensor.name, axis))
        if plan is None:
            return Plan() if _is_zero(tensor) else self._reasons.constant(operation)
        return plan

    def _layer_to_cut(self, tensor, axis):
        """Returns the layer whose output a tensor is, if the mean of all its outputs may be subtracted."""
        call = self._traced.call_of(tensor.op)
        if axis != -1 or call is None or call.output is not tensor or id(call.layer) in self._fixed:
            return None
        outputs = [
            other.output
            for other in self._traced.calls
            if other.layer is call.layer and not other.reverse
        ]
        for output in outputs:
            if (
                not isinstance(output, tf.Tensor) or output.graph is not tensor.graph
            ):  # as in a loop
                return None
            made = self._traced.call_of(output.op)
            if (output.name, -1) in self._readers or made is None or made.layer is not call.layer:
                return None
        return call.layer


def _is_zero(tensor):
    """Whether a tensor is a constant with no entry but zero."""
    value = tf.get_static_value(tensor)
    return value is not None and not np.any(value)


def _together(plans: list[Plan | str]) -> Plan | str:
    """Returns what centres all of several tensors, or the first reason why one cannot be centred."""
    why_not = (plan for plan in plans if isinstance(plan, str))
    return next(why_not, None) or functools.reduce(operator.or_, plans, Plan())
