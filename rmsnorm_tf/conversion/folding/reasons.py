"""Why a tensor cannot be centred, in one line for a report."""

import keras
import tensorflow as tf

from rmsnorm_tf.conversion.folding.trace import Trace


def why_fixed(variable: keras.Variable, fixed: dict[int, str], names: dict[int, str]) -> str | None:
    """Returns why a variable must keep its value, or None, given known reasons and the names of layers, by id."""
    name = names.get(id(variable), variable.path)
    if id(variable) in fixed:
        return fixed[id(variable)]
    if variable.constraint is not None:
        return f"{name} has a constraint on its {variable.name}, which a change might break"
    return None if keras.backend.is_float_dtype(variable.dtype) else f"{name} is quantized"


_DROPOUT = (keras.layers.Dropout, keras.layers.GaussianDropout, keras.layers.AlphaDropout)


class Reasons:
    """Puts operations of a trace into words, given the names of the layers by id."""

    def __init__(self, traced: Trace, names: dict[int, str]) -> None:
        self._traced = traced
        self._names = names

    def visible(self, tensor: tf.Tensor, consumer: tf.Operation | None) -> str:
        """Says who would see a constant that is added to a tensor: an operation, or the caller of the model."""
        if consumer is None:
            return f"the output of {self._at(tensor.op)} is an output of the model"
        maker = self._layer(tensor.op)
        reader = self._layer(consumer)
        if getattr(maker, "activity_regularizer", None) is not None and reader is not maker:
            return f"the output of {self._at(tensor.op)} also goes to an activity regularizer"
        if reader is not None and reader is maker:
            return self.not_affine(consumer)
        if isinstance(maker, keras.layers.LayerNormalization):
            return f"post-LN: the output of {self._at(tensor.op)} is the stream, which {self._at(consumer)} reads too"
        return f"the output of {self._at(tensor.op)} also goes to {self._at(consumer)}"

    def constant(self, operation: tf.Operation) -> str:
        """Says that an operation adds a number to all channels."""
        return f"{self._at(operation)} adds a constant, which no weight can take away"

    def not_affine(self, operation: tf.Operation) -> str:
        """Says why no weights centre the output of an operation."""
        name = self._at(operation)
        layer = self._layer(operation)
        if operation.type == "Placeholder":
            return f"{name} is an input of the model"
        if isinstance(layer, _DROPOUT):
            why = "drops entries, after which the mean is no longer zero"
            return f"{name} {why}; for_inference=True ignores dropout that only training has"
        if isinstance(layer, keras.layers.LayerNormalization) and layer.gamma is not None:
            return f"{name} multiplies its output by a gain, after which the mean is no longer zero"
        activation = getattr(layer, "activation", None)
        if activation not in (None, keras.activations.linear):
            return f"{name} has the activation {getattr(activation, '__name__', type(activation).__name__)}"
        if getattr(layer, "quantization_mode", None):
            return f"{name} is quantized"
        if getattr(layer, "groups", 1) > 1:
            return f"{name} has groups, over which its weights cannot be centred"
        if operation.type == "Const":
            return self.constant(operation)
        if operation.type.startswith("DepthwiseConv"):
            return f"{name} mixes no channels, so no weights of it centre its output"
        return (
            f"the output of {name} is not affine in weights that can be centred ({operation.type})"
        )

    def _layer(self, operation):
        call = self._traced.call_of(operation)
        return call and call.layer

    def _at(self, operation):
        """Returns the name of the layer that an operation belongs to, or its own."""
        own = operation.name.rpartition("/")[2]
        return self._names.get(id(self._layer(operation)), own)
