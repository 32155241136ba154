"""Which tensors of a model may be centred over their last axis, and which weights do it.

With C t = t - mean(t), LayerNorm is RMSNorm of the centred input: LN(t) = RMS(C t). C is linear. So where t is the
output of an affine map, or a sum of such outputs, centring the weights of the maps gives C t at no cost. But then t
itself no longer exists, so every consumer of t must compute the same from C t. A LayerNorm does. For a sum or an
identity it depends on the consumers of its own output.

So the tensors that may be centred are the largest set that satisfies all of these conditions. The search starts with
all tensors and removes those that violate a condition, each with the reason, until nothing changes.
"""

from collections.abc import Collection, Iterator

import keras
import tensorflow as tf

from rmsnorm_tf._centring_rules import rule_for, why_not_a_norm
from rmsnorm_tf._model_graph import Call, Graph, Tensor


class Centring:
    """Which tensors of a model may be centred.

    Args:
        model: A functional or sequential model.
        pinned: Ids of the layers that must stay as they are, because another model calls them too.
    """

    def __init__(self, model: keras.Model, pinned: Collection[int] = ()) -> None:
        self._graph = Graph(model)
        self._pinned = pinned
        self._reasons: dict[Tensor, str] = {}
        tensors = self._graph.tensors()
        while True:
            known = len(self._reasons)
            for tensor in (*tensors, *reversed(tensors)):  # reasons spread both ways
                if tensor not in self._reasons and (why := self._why_not(tensor)):
                    self._reasons[tensor] = why
            if len(self._reasons) == known:
                return

    def why_not_folded(self, layer: keras.layers.LayerNormalization) -> str | None:
        """Returns why a LayerNormalization has to stay, or None."""
        if id(layer) in self._pinned:
            return f"{layer.name} is called by another model too"
        tensors = self._inputs_of(layer)
        why = next((why for t in tensors if (why := why_not_a_norm(layer, self._graph.sizes[t]))), None)
        return why or self._first_reason(tensors)

    def maps_before(self, layer: keras.layers.LayerNormalization) -> list[keras.Layer]:
        """Returns the maps whose weights have to be centred for the layer's inputs to be centred."""
        found, seen, waiting = set(), set(), self._inputs_of(layer)
        while waiting:
            tensor = waiting.pop()
            if tensor in seen:
                continue
            seen.add(tensor)
            if self._passes_on(tensor.call):
                waiting += self._graph.inputs[tensor.call]
            elif rule_for(layer := self._graph.operation(tensor.call)).positions(layer):
                found.add(tensor.call.operation)
        return [operation for name, operation in self._graph.operations.items() if name in found]

    def _why_not(self, tensor):
        """Returns why `tensor` cannot be centred, given the reasons known so far, or None."""
        layer = self._graph.operation(tensor.call)
        if self._is_centred_already(tensor.call):
            return None
        if why := self._why_its_source_is_not(tensor):
            return why
        if tensor in self._graph.outputs:
            return f"the output of {layer.name} is an output of the model"
        if _any_inside(layer, "activity_regularizer"):
            return f"the output of {layer.name} also goes to an activity regularizer"
        reasons = (self._why_a_consumer_differs(tensor, call) for call in self._graph.consumers[tensor])
        return next(filter(None, reasons), None)

    def _why_its_source_is_not(self, tensor):
        if self._passes_on(tensor.call):
            return self._first_reason(self._graph.inputs[tensor.call])
        layer = self._graph.operation(tensor.call)
        if tensor.index > 0:
            return f"{layer.name} has more than one output"
        if why := self._why_its_weights_stay(layer, tensor.call):
            return why
        return self._first_reason(Tensor(call, 0) for call in self._graph.calls_of(layer.name))

    def _why_its_weights_stay(self, layer, call):
        """Returns why the output of `layer` is not that of an affine map whose weights may be centred."""
        rule = rule_for(layer)
        if why := rule.obstacle(layer, [self._graph.sizes[t] for t in self._graph.inputs[call]]):
            return why
        if id(layer) in self._pinned:
            return f"{layer.name} is called by another model too"
        activation = getattr(layer, "activation", None)
        if activation not in (None, keras.activations.linear):
            return f"{layer.name} has the activation {getattr(activation, '__name__', type(activation).__name__)}"
        if _any_inside(layer, "lora_enabled") or _any_inside(layer, "quantization_mode"):
            return f"{layer.name} is quantized or has LoRA weights"
        for position in rule.positions(layer):
            if layer.weights[position].constraint is not None:
                return (
                    f"{layer.name} has a constraint on its {layer.weights[position].name}, which centring might break"
                )
        return None

    def _why_a_consumer_differs(self, tensor, call):
        consumer = self._graph.operation(call)
        if isinstance(consumer, keras.layers.LayerNormalization):
            return self.why_not_folded(consumer)
        if self._passes_on(call):
            return self._reasons.get(Tensor(call, 0))
        return f"the output of {tensor.call.operation} also goes to {consumer.name}, which is no LayerNormalization"

    def _is_centred_already(self, call):
        """Whether the mean of an output is zero for any input: that of a LayerNorm without gain and offset is."""
        layer = self._graph.operation(call)
        if not isinstance(layer, keras.layers.LayerNormalization) or layer.scale or layer.center:
            return False
        [tensor] = self._graph.inputs[call]
        return why_not_a_norm(layer, self._graph.sizes[tensor]) is None

    def _passes_on(self, call):
        """Whether the output of a call is centred as soon as all its inputs are."""
        layer = self._graph.operation(call)
        return rule_for(layer).passes_on(layer, self._input_sizes(call), self._graph.constants[call])

    def _input_sizes(self, call: Call):
        return [self._graph.sizes[tensor] for tensor in self._graph.inputs[call]]

    def _inputs_of(self, layer):
        return [tensor for call in self._graph.calls_of(layer.name) for tensor in self._graph.inputs[call]]

    def _first_reason(self, tensors) -> str | None:
        return next((self._reasons[tensor] for tensor in tensors if tensor in self._reasons), None)


def _any_inside(layer: keras.Operation, attribute: str) -> bool:
    """Whether a layer, or one inside it, has a value under this name."""
    inside: Iterator | list = tf.train.TrackableView(layer).descendants() if isinstance(layer, keras.Layer) else []
    return any(getattr(inner, attribute, None) for inner in inside)
