"""What centring has to know of each kind of layer: one table."""

from collections.abc import Callable
from dataclasses import dataclass

import keras

from rmsnorm_tf._equation import check_epsilon
from rmsnorm_tf._model_graph import operator_add

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class Rule:
    """How centring treats the layers of one class.

    Attributes:
        weights: Which weights to centre so that the layer's output is centred: from the end of a weight's path to the
            axis. Empty if the layer has no weights to centre.
        passes_on: Given the layer, the shapes of its inputs and the number of constants among them, whether its output
            is centred as soon as all its inputs are.
        obstacle: Given the layer and the shapes of its inputs, why its weights cannot be centred, or None.
    """

    weights: dict[str, int] | Callable[[keras.Layer], dict[str, int]]
    passes_on: Callable[[keras.Operation, list[Shape], int], bool]
    obstacle: Callable[[keras.Operation, list[Shape]], str | None]

    def positions(self, layer: keras.Operation) -> dict[int, int]:
        """Returns the axis to centre over for each position in `layer.weights`."""
        if not self.weights:
            return {}
        axes = self.weights(layer) if callable(self.weights) else self.weights
        paths = [weight.path for weight in layer.weights]
        return {i: axis for i, path in enumerate(paths) for end, axis in axes.items() if path.endswith(f"/{end}")}


def rule_for(operation: keras.Operation) -> Rule:
    """Returns the rule for a layer or an operation; an unknown one blocks centring."""
    if isinstance(operation, keras.layers.LayerNormalization):  # its subclasses block with a reason of their own
        return _NORM
    return _SUM if type(operation) is operator_add() else _RULES.get(type(operation), _UNKNOWN)


def why_not_a_norm(layer: keras.layers.LayerNormalization, shape: Shape) -> str | None:
    """Returns why no RMSNormalization equals a LayerNormalization on centred inputs of `shape`, or None."""
    axes = layer.axis if isinstance(layer.axis, (list, tuple)) else [layer.axis]
    if [axis % len(shape) for axis in axes] != [len(shape) - 1]:
        return f"{layer.name} normalizes over axis {layer.axis}, and only the last one is folded"
    return why_no_counterpart(layer)


def why_no_counterpart(layer: keras.layers.LayerNormalization) -> str | None:
    """Returns why no RMSNormalization computes the same as a LayerNormalization except for the centring, or None."""
    if type(layer) is not keras.layers.LayerNormalization:
        return f"{layer.name} ({type(layer).__name__}) may compute something else than LayerNormalization"
    if getattr(layer, "rms_scaling", False):  # deprecated
        return f"{layer.name} has rms_scaling=True, which is neither LayerNorm nor RMSNorm"
    try:
        check_epsilon(layer.epsilon)
    except ValueError:
        return f"{layer.name} has epsilon={layer.epsilon}, which RMSNormalization does not accept"
    return None


def _never(operation, shapes, constants):
    return False


def _no_obstacle(layer, shapes):
    return None


def _unknown(layer, shapes):
    return f"{layer.name} ({type(layer).__name__}) is not known to be an affine map"


def _map(weights, obstacle=_no_obstacle) -> Rule:
    """An affine map."""
    return Rule(weights, _never, obstacle)


def _passing(passes_on, obstacle=_unknown) -> Rule:
    """A layer whose output is centred if its inputs are and `passes_on` holds."""
    return Rule({}, passes_on, obstacle)


def _obstacle_of_conv(layer, shapes):
    if layer.data_format != "channels_last":
        return f"{layer.name} has its channels first, not on the last axis"
    if layer.groups > 1:
        return f"{layer.name} has groups, over which its weights cannot be centred"
    return None


def _output_axis(layer):
    """Returns the kernel's axis that is the output's last one, unless it is an axis of the input too."""
    operands, output = layer.equation.split("->")
    inputs, kernel = operands.split(",")
    letter = output[-1]
    return kernel.index(letter) if kernel.count(letter) == 1 and letter not in inputs else None


def _obstacle_of_einsum(layer, shapes):
    if _output_axis(layer) is None:
        return f"{layer.name} has no axis in its kernel for the last axis of its output"
    return None


def _obstacle_of_norm(layer, shapes):
    if layer.scale:
        return f"{layer.name} multiplies its output by a gain, after which the mean is no longer zero"
    return why_not_a_norm(layer, shapes[0])


def _sums_equal_widths(operation, shapes, constants):
    widths = {shape[-1] for shape in shapes}
    return constants == 0 and len(widths) == 1 and None not in widths


_NORM = _map({"beta": -1}, _obstacle_of_norm)
_SUM = _passing(_sums_equal_widths, lambda op, _: f"{op.name} adds a constant, or tensors of different sizes")
_UNKNOWN = _passing(_never)
_CONV = _map({"kernel": -1, "bias": -1}, _obstacle_of_conv)
_ATTENTION = _map({"attention_output/kernel": -1, "attention_output/bias": -1})

_RULES = {
    keras.layers.Dense: _map({"kernel": -1, "bias": -1}),
    keras.layers.EinsumDense: _map(lambda layer: {"kernel": _output_axis(layer), "bias": -1}, _obstacle_of_einsum),
    keras.layers.Conv1D: _CONV,
    keras.layers.Conv2D: _CONV,
    keras.layers.Conv3D: _CONV,
    keras.layers.Embedding: _map({"embeddings": -1}),
    keras.layers.MultiHeadAttention: _ATTENTION,
    keras.layers.GroupQueryAttention: _ATTENTION,
    keras.layers.Add: _SUM,
    keras.layers.Identity: _passing(lambda *_: True),
    keras.layers.Activation: _passing(lambda layer, *_: layer.activation is keras.activations.linear),
    keras.layers.Dropout: _passing(
        lambda layer, *_: layer.rate == 0,
        lambda layer, _: f"{layer.name} drops entries in training, after which the mean is no longer zero",
    ),
    keras.layers.InputLayer: _passing(_never, lambda layer, _: f"{layer.name} is an input of the model"),
}
