"""Which tensors of a model may be centred over their last axis, and which weights make them so.

With C t = t - mean(t), LayerNorm is RMSNorm of the centred input: LN(t) = RMS(C t). C is linear, so C t comes for
nothing where t is the output of an affine map, by centring the map's weights, or a sum of such outputs. But then t
itself is gone, so whoever else takes it must not be able to tell t from C t: a LayerNorm cannot, and with a sum or an
identity it depends on what becomes of their own output.

So the tensors that may be centred are the greatest set that agrees with all of this. It is found by taking away, with
the reason, what does not agree, until nothing changes.
"""

import functools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rmsnorm_tf.equation import check_epsilon


class Call(NamedTuple):
    """One call of an operation in a model."""

    operation: str
    index: int


class Tensor(NamedTuple):
    """One output of a call."""

    call: Call
    index: int


class Graph:
    """The calls of a plain functional or sequential model, read off its config."""

    def __init__(self, model: keras.Model) -> None:
        view = keras.Model(model.inputs, model.outputs)
        config = view.get_config()
        self.operations = {operation.name: operation for operation in view.operations}
        self.outputs = set(_histories(config["output_layers"]))
        self.inputs: dict[Call, list[Tensor]] = {}
        self.takers: dict[Tensor, list[Call]] = defaultdict(list)
        self.sizes: dict[Tensor, tuple[int | None, ...]] = {}
        self.constants: dict[Call, int] = {}
        for layer in config["layers"]:
            for index, node in enumerate(layer["inbound_nodes"] or [{}]):
                call = Call(layer["name"], index)
                leaves = list(_leaves((node.get("args", ()), node.get("kwargs", {}))))
                tensors = [leaf for leaf in leaves if isinstance(leaf, dict)]
                self.inputs[call] = [next(_histories(tensor["config"]["keras_history"])) for tensor in tensors]
                self.constants[call] = len(leaves) - len(tensors)
                for tensor, leaf in zip(self.inputs[call], tensors, strict=True):
                    self.takers[tensor].append(call)
                    self.sizes[tensor] = tuple(leaf["config"]["shape"])

    def calls_of(self, name: str) -> Iterator[Call]:
        """Yields the calls of an operation."""
        return (call for call in self.inputs if call.operation == name)

    def operation(self, call: Call) -> keras.Operation:
        return self.operations[call.operation]


def why_not_centred(graph: Graph) -> dict[Tensor, str]:
    """Returns the tensors that cannot be centred, each with the reason, as a clause about the model's layers."""
    reasons: dict[Tensor, str] = {}
    tensors = [Tensor(call, 0) for call in graph.inputs] + [t for t in graph.takers if t.index > 0]
    while True:
        known = len(reasons)
        for tensor in (*tensors, *reversed(tensors)):  # reasons spread both ways
            if tensor not in reasons and (why := _why_not(graph, tensor, reasons)):
                reasons[tensor] = why
        if len(reasons) == known:
            return reasons


def why_not_folded(graph: Graph, reasons: dict[Tensor, str], layer: keras.layers.LayerNormalization) -> str | None:
    """Returns why the layer has to stay, given what `why_not_centred` returned, or None."""
    tensors = _inputs_of(graph, layer)
    why = next((why for t in tensors if (why := _why_not_a_norm(layer, graph.sizes[t]))), None)
    return why or next((reasons[t] for t in tensors if t in reasons), None)


def maps_before(graph: Graph, layer: keras.layers.LayerNormalization) -> list[str]:
    """Returns the names of the maps whose weights have to be centred for the layer's inputs to be so."""
    found, seen, waiting = set(), set(), _inputs_of(graph, layer)
    while waiting:
        tensor = waiting.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        if _passes_on(graph, tensor.call):
            waiting += graph.inputs[tensor.call]
        elif weights_to_centre(graph.operation(tensor.call)):
            found.add(tensor.call.operation)
    return [name for name in graph.operations if name in found]


def _why_not_a_norm(layer: keras.layers.LayerNormalization, shape: tuple[int | None, ...]) -> str | None:
    """Returns why a LayerNormalization has no RMSNormalization that equals it on centred inputs of `shape`."""
    axes = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
    if [axis % len(shape) for axis in axes] != [len(shape) - 1]:
        return f"{layer.name} normalizes over axis {layer.axis}, and only the last one is folded"
    return why_no_counterpart(layer)


def why_no_counterpart(layer: keras.layers.LayerNormalization) -> str | None:
    """Returns why a LayerNormalization has no RMSNormalization that differs from it by the centring alone."""
    if type(layer) is not keras.layers.LayerNormalization:
        return f"{layer.name} ({type(layer).__name__}) may compute something else than LayerNormalization"
    if getattr(layer, "rms_scaling", False):  # deprecated
        return f"{layer.name} has rms_scaling=True, which is neither LayerNorm nor RMSNorm"
    try:
        check_epsilon(layer.epsilon)
    except ValueError:
        return f"{layer.name} has epsilon={layer.epsilon}, which RMSNormalization does not take"
    return None


def weights_to_centre(layer: keras.Operation) -> dict[int, int]:
    """Returns which of the layer's weights to centre, and over which axis, for its output to be centred."""
    kind = type(layer)
    if kind in (keras.layers.Dense, keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D):
        axes = {"kernel": -1, "bias": -1}
    elif kind is keras.layers.EinsumDense:
        axes = {"kernel": _output_axis(layer.equation), "bias": -1}
    elif kind is keras.layers.Embedding:
        axes = {"embeddings": -1}
    elif kind in (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention):
        axes = {"attention_output/kernel": -1, "attention_output/bias": -1}
    elif kind is keras.layers.LayerNormalization:
        axes = {"beta": -1}
    else:
        return {}
    paths = [weight.path for weight in layer.weights]
    return {i: axis for i, path in enumerate(paths) for end, axis in axes.items() if path.endswith(f"/{end}")}


def _inputs_of(graph, layer):
    return [tensor for call in graph.calls_of(layer.name) for tensor in graph.inputs[call]]


def _why_not(graph, tensor, reasons):
    """Returns why `tensor` cannot be centred, given what is known of others, or None."""
    layer = graph.operation(tensor.call)
    if _is_centred_already(graph, tensor.call):
        return None
    made = _why_not_made(graph, tensor, reasons)
    if made:
        return made
    if tensor in graph.outputs:
        return f"the output of {layer.name} is an output of the model"
    if _any_inside(layer, "activity_regularizer"):
        return f"the output of {layer.name} also goes to an activity regularizer"
    for call in graph.takers[tensor]:
        taken = _why_not_taken(graph, tensor, call, reasons)
        if taken:
            return taken
    return None


def _why_not_made(graph, tensor, reasons):
    layer = graph.operation(tensor.call)
    if _passes_on(graph, tensor.call):
        return next((reasons[t] for t in graph.inputs[tensor.call] if t in reasons), None)
    why = _why_no_map(graph, tensor.call) if tensor.index == 0 else f"{layer.name} has more than one output"
    if why:
        return why
    others = [Tensor(call, 0) for call in graph.calls_of(layer.name)]
    return next((reasons[t] for t in others if t in reasons), None)


def _why_not_taken(graph, tensor, call, reasons):
    taker = graph.operation(call)
    if isinstance(taker, keras.layers.LayerNormalization):
        return why_not_folded(graph, reasons, taker)
    if _passes_on(graph, call):
        return reasons.get(Tensor(call, 0))
    return f"the output of {tensor.call.operation} also goes to {taker.name}, which is no LayerNormalization"


def _why_no_map(graph, call):
    """Returns why the output of a call is not that of an affine map whose weights may be centred."""
    layer = graph.operation(call)
    if isinstance(layer, keras.layers.LayerNormalization):
        if layer.scale:
            return f"{layer.name} multiplies its output by a gain, after which the mean is no longer zero"
        [tensor] = graph.inputs[call]
        why = _why_not_a_norm(layer, graph.sizes[tensor])
        if why:
            return why
    if isinstance(layer, keras.layers.InputLayer):
        return f"{layer.name} is an input of the model"
    if isinstance(layer, keras.layers.Dropout):
        return f"{layer.name} drops entries in training, after which the mean is no longer zero"
    if type(layer) in (keras.layers.Add, _operator_add()):
        return f"{layer.name} adds a constant, or tensors of unlike sizes"
    if not weights_to_centre(layer):
        return f"{layer.name} ({type(layer).__name__}) is not known to be an affine map"
    activation = getattr(layer, "activation", None)
    if activation not in (None, keras.activations.linear):
        return f"{layer.name} has the activation {getattr(activation, '__name__', type(activation).__name__)}"
    if _any_inside(layer, "lora_enabled") or _any_inside(layer, "quantization_mode"):
        return f"{layer.name} is quantized or has LoRA weights"
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        return f"{layer.name} has its channels first, not on the last axis"
    if getattr(layer, "groups", 1) > 1:
        return f"{layer.name} has groups, over which its weights cannot be centred"
    if isinstance(layer, keras.layers.EinsumDense) and _output_axis(layer.equation) is None:
        return f"{layer.name} has no axis in its kernel for the last axis of its output"
    for i in weights_to_centre(layer):
        if layer.weights[i].constraint is not None:
            return f"{layer.name} has a constraint on its {layer.weights[i].name}, which centring might break"
    return None


def _any_inside(layer, attribute):
    """Whether a layer, or one inside it, has something under this name."""
    inside = tf.train.TrackableView(layer).descendants() if isinstance(layer, keras.Layer) else []
    return any(getattr(inner, attribute, None) for inner in inside)


def _is_centred_already(graph, call):
    """A LayerNorm without gain and offset has a mean of zero, whatever becomes of its input."""
    layer = graph.operation(call)
    if not isinstance(layer, keras.layers.LayerNormalization) or layer.scale or layer.center:
        return False
    [tensor] = graph.inputs[call]
    return _why_not_a_norm(layer, graph.sizes[tensor]) is None


def _passes_on(graph, call):
    """Whether the output of a call is centred as soon as all its inputs are."""
    layer, inputs = graph.operation(call), graph.inputs[call]
    if type(layer) in (keras.layers.Add, _operator_add()):
        widths = {graph.sizes[t][-1] for t in inputs}
        return graph.constants[call] == 0 and len(widths) == 1 and None not in widths
    if type(layer) is keras.layers.Dropout:
        return layer.rate == 0
    if type(layer) is keras.layers.Activation:
        return layer.activation is keras.activations.linear
    return type(layer) is keras.layers.Identity


@functools.cache
def functional_class() -> type:
    """Returns the class of plain functional models, which has no public name."""
    return type(_sum_of_one_input())


@functools.cache
def _operator_add():
    """Returns the class of the operation that `+` puts into a model."""
    return type(_sum_of_one_input().operations[-1])


def _sum_of_one_input():
    x = keras.Input((1,))
    return keras.Model(x, x + x)


def _output_axis(equation):
    """Returns the kernel's axis that is the last of the output of an EinsumDense, if it is no axis of the input."""
    operands, output = equation.split("->")
    inputs, kernel = operands.split(",")
    letter = output[-1]
    return kernel.index(letter) if kernel.count(letter) == 1 and letter not in inputs else None


def _histories(structure: Any) -> Iterator[Tensor]:
    """Yields the tensors in a structure of `[operation, call, output]`."""
    if isinstance(structure, dict):
        structure = list(structure.values())
    if len(structure) == 3 and isinstance(structure[0], str):
        operation, call, output = structure
        yield Tensor(Call(operation, call), output)
    else:
        for element in structure:
            yield from _histories(element)


def _leaves(structure: Any) -> Iterator[Any]:
    """Yields what a call was given: a dictionary for a tensor, anything else for a constant."""
    if isinstance(structure, dict) and structure.get("class_name") == "__keras_tensor__":
        yield structure
    elif isinstance(structure, dict):
        for element in structure.values():
            yield from _leaves(element)
    elif isinstance(structure, (list, tuple)):
        for element in structure:
            yield from _leaves(element)
    elif structure is not None:
        yield structure
