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
import itertools
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
from rmsnorm_tf.conversion.model.report import Stays

# How many norms each explicit subtraction must serve.
NORMS_PER_CUT = 3


@dataclass(frozen=True)
class Plan:
    """Lists what centres a tensor.

    Attributes:
        weights: The resources to centre, each with the axis.
        gains: What to multiply into weights beforehand: the weight's resource and axis, and the
            gain's resource.
        cuts: The ids of the layers from whose outputs to subtract the mean.
    """

    weights: frozenset[tuple[str, int]] = frozenset()
    gains: frozenset[tuple[str, int, str]] = frozenset()
    cuts: frozenset[int] = frozenset()

    def __or__(self, other: "Plan") -> "Plan":
        return Plan(self.weights | other.weights, self.gains | other.gains, self.cuts | other.cuts)


class Centring:
    """Finds a plan for each tensor of a traced model and each of its axes.

    Why layers and variables must stay, and what they are called, is given by id.
    """

    def __init__(self, traced: Trace, fixed: dict[int, str], names: dict[int, str]) -> None:
        self._traced = traced
        self._fixed = fixed
        self._names = names
        self._reasons = Reasons(traced, names)
        self._readers: dict[tuple[str, int], tf.Operation | None] = {}
        self._plans: dict[tuple[str, int], Plan | Stays] = {}
        self._why_cut: dict[int, Stays] = {}
        for operation in reversed(traced.operations):
            for tensor in operation.outputs:
                for axis in self._axes(tensor):
                    self._find_reader(tensor, axis)
        for operation in traced.operations:
            for number, tensor in enumerate(operation.outputs):
                for axis in self._axes(tensor):
                    self._plans[tensor.name, axis] = self._plan(operation, number, axis)

    def plans(self, norms: list[keras.Layer]) -> dict[int, Plan | Stays]:
        """Returns, by the id of each norm, what centres all its inputs, or why it stays."""
        plans = {id(norm): self._plan_for(norm) for norm in norms}
        cuts_of = {
            key: plan.cuts for key, plan in plans.items() if isinstance(plan, Plan) and plan.cuts
        }
        for key in cuts_of.keys() - _paying(cuts_of).keys():
            plans[key] = self._why_cuts(cuts_of[key])
        return plans

    def _plan_for(self, norm):
        tensors = self._traced.norms.get(id(norm))
        if not tensors:
            return Stays(f"the model does not call {norm.name}")
        if any(t is None for t in tensors):
            return Stays(
                f"{norm.name} is called in a loop or another function, where folding cannot look"
            )
        why = f"{norm.name} reads numbers that are not floating-point, or of unknown rank"
        return _together([self._plans.get((t.name, -1), Stays(why)) for t in tensors])

    def _why_cuts(self, cuts):
        """Returns why weights do not centre what the first of these layers returns."""
        return next(why for cut, why in self._why_cut.items() if cut in cuts)

    def _axes(self, tensor):
        if tensor.dtype == tf.resource:
            variable = self._traced.variables.get(tensor.name)
            return range(-len(variable.shape), 0) if variable is not None else ()
        return range(-(tensor.shape.rank or 0), 0) if tensor.dtype.is_floating else ()

    def _find_reader(self, tensor, axis):
        """Finds the operation that sees a constant added along an axis: None for an output."""
        for operation, position in self._traced.consumers[tensor.name]:
            reached = self._reached(operation, position, axis)
            if reached is None:
                self._readers[tensor.name, axis] = operation
                return
            seen = [key for key in reached if key in self._readers]
            if seen:
                self._readers[tensor.name, axis] = self._readers[seen[0]]
                return
        if tensor.name in self._traced.outputs:
            self._readers[tensor.name, axis] = None

    def _reached(self, operation, position, axis):
        """Returns the tensors and axes that a constant is carried to, or None if it is seen."""
        if not operation.outputs:
            return None
        if operation.outputs[0].name in self._traced.normalized:
            return [] if axis == -1 else None
        reached = targets(operation, position, axis)
        return reached and [(operation.outputs[number].name, a) for number, a in reached]

    def _plan(self, operation, number, axis):
        """Returns what centres an output along an axis, or why nothing does."""
        tensor = operation.outputs[number]
        plan = self._plan_by_weights(operation, number, axis)
        if plan != Plan() and (tensor.name, axis) in self._readers:
            return self._reasons.visible(tensor, self._readers[tensor.name, axis])
        if isinstance(plan, Plan) and len(plan.cuts) < 2:
            return plan
        layer = self._layer_to_cut(tensor, axis)
        if layer is None:
            return plan
        why = plan if isinstance(plan, Stays) else self._why_cuts(plan.cuts)
        self._why_cut.setdefault(id(layer), why)
        return Plan(cuts=frozenset({id(layer)}))

    def _plan_by_weights(self, operation, number, axis):
        tensor = operation.outputs[number]
        if tensor.dtype == tf.resource:
            return self._why_fixed(tensor.name) or Plan(frozenset({(tensor.name, axis)}))
        if tensor.name in self._traced.normalized:
            return Plan() if axis == -1 else self._reasons.not_affine(operation)
        if operation.type == "Const" and _is_zero(tensor):
            return Plan()
        found = sources(operation, axis, number)
        if found is not None:
            return _together(
                [self._plan_of_input(operation, operation.inputs[i], a) for i, a in found]
            )
        absorbed = gain_to_absorb(self._traced, operation, axis, self._readers)
        return self._plan_by_gain(*absorbed) if absorbed else self._reasons.not_affine(operation)

    def _plan_by_gain(self, resource, weights):
        gain = self._traced.variables[resource]
        if not gain.numpy().all():
            return Stays(
                f"{self._names[id(gain)]} multiplies by 0, which weights would not recover from "
                "in training"
            )
        fixed = filter(None, map(self._why_fixed, (resource, *(name for name, _ in weights))))
        gains = frozenset((*weight, resource) for weight in weights)
        return next(fixed, None) or Plan(weights, gains)

    def _why_fixed(self, resource):
        return why_fixed(self._traced.variables[resource], self._fixed, self._names)

    def _plan_of_input(self, operation, tensor, axis):
        """Returns what centres an input, which without the axis adds the same to all channels."""
        plan = self._plans.get((tensor.name, axis))
        if plan is None:
            return Plan() if _is_zero(tensor) else self._reasons.constant(operation)
        return plan

    def _layer_to_cut(self, tensor, axis):
        """Returns the layer that returns a tensor, if the mean of all its outputs may go."""
        call = self._traced.call_of(tensor.op)
        if axis != -1 or call is None or call.output is not tensor or id(call.layer) in self._fixed:
            return None
        calls = [c for c in self._traced.calls if c.layer is call.layer and not c.reverse]
        return call.layer if all(self._may_cut(c, tensor.graph) for c in calls) else None

    def _may_cut(self, call, graph):
        """Returns whether nobody sees the mean of what a call, perhaps in a loop, returns."""
        output = call.output
        if not isinstance(output, tf.Tensor) or output.graph is not graph:
            return False
        made = self._traced.call_of(output.op)
        is_own = made is not None and made.layer is call.layer
        return is_own and (output.name, -1) not in self._readers


def _paying(cuts_of):
    """Returns the norms whose cuts each serve enough norms. A norm that stays is not served."""
    served = Counter(itertools.chain.from_iterable(cuts_of.values()))
    useful = {cut for cut, count in served.items() if count >= NORMS_PER_CUT}
    paying = {key: cuts for key, cuts in cuts_of.items() if cuts <= useful}
    return paying if len(paying) == len(cuts_of) else _paying(paying)


def _is_zero(tensor):
    """Returns whether a tensor is a constant with no entry but zero."""
    value = tf.get_static_value(tensor)
    return value is not None and not np.any(value)


def _together(plans: list[Plan | Stays]) -> Plan | Stays:
    """Returns what centres all of several tensors, or why the first that stays does."""
    stays = (plan for plan in plans if isinstance(plan, Stays))
    return next(stays, None) or functools.reduce(operator.or_, plans, Plan())
