"""Says in one line why a tensor cannot be centred."""

import keras
import tensorflow as tf

from rmsnorm_tf.conversion.folding.trace import Trace
from rmsnorm_tf.conversion.model.report import Stays

_ADDS_A_CONSTANT = "adds a constant, which no weight can take away"
_DROPOUT = (keras.layers.Dropout, keras.layers.GaussianDropout, keras.layers.AlphaDropout)


def why_fixed(
    variable: keras.Variable, fixed: dict[int, str], names: dict[int, str]
) -> Stays | None:
    """Returns why a variable must keep its value, or None.

    Reasons that are known already and the names of layers are given by id.
    """
    name = names.get(id(variable), variable.path)
    if id(variable) in fixed:
        return Stays(fixed[id(variable)])
    if variable.constraint is not None:
        why = f"has a constraint on its {variable.name}, which a change might break"
        return Stays(f"{name} {why}")
    if not keras.backend.is_float_dtype(variable.dtype):
        return Stays(f"{name} is quantized")
    return None


class Reasons:
    """Puts operations of a trace into words, given the names of the layers by id."""

    def __init__(self, traced: Trace, names: dict[int, str]) -> None:
        self._traced = traced
        self._names = names

    def visible(self, tensor: tf.Tensor, consumer: tf.Operation | None) -> Stays:
        """Says who sees a constant added to a tensor: an operation, or the caller of the model."""
        output = f"the output of {self._at(tensor.op)}"
        if consumer is None:
            return Stays(f"{output} is an output of the model")
        maker = self._layer(tensor.op)
        reader = self._layer(consumer)
        if getattr(maker, "activity_regularizer", None) is not None and reader is not maker:
            return Stays(f"{output} also goes to an activity regularizer")
        if reader is not None and reader is maker:
            return self.not_affine(consumer)
        if isinstance(maker, keras.layers.LayerNormalization):
            return Stays(f"post-norm: {output} is the stream, which {self._at(consumer)} reads too")
        return Stays(f"{output} also goes to {self._at(consumer)}")

    def constant(self, operation: tf.Operation) -> Stays:
        """Says that an operation adds a number to all channels."""
        return Stays(f"{self._at(operation)} {_ADDS_A_CONSTANT}")

    def not_affine(self, operation: tf.Operation) -> Stays:
        """Says why no weights centre the output of an operation."""
        name = self._at(operation)
        layer = self._layer(operation)
        activation = getattr(layer, "activation", None) or keras.activations.linear
        function = getattr(activation, "__name__", type(activation).__name__)
        is_norm = isinstance(layer, keras.layers.LayerNormalization)
        no_longer_zero = "after which the mean is no longer zero"
        reasons = [
            (operation.type == "Placeholder", "is an input of the model"),
            (
                isinstance(layer, _DROPOUT),
                f"drops entries, {no_longer_zero}; for_inference=True ignores dropout that only "
                "training has",
            ),
            (
                is_norm and layer.gamma is not None,
                f"multiplies its output by a gain, {no_longer_zero}",
            ),
            (activation is not keras.activations.linear, f"has the activation {function}"),
            (getattr(layer, "quantization_mode", None), "is quantized"),
            (
                getattr(layer, "groups", 1) > 1,
                "has groups, over which its weights cannot be centred",
            ),
            (operation.type == "Const", _ADDS_A_CONSTANT),
            (
                operation.type.startswith("DepthwiseConv"),
                "mixes no channels, so no weights of it centre its output",
            ),
        ]
        for holds, reason in reasons:
            if holds:
                return Stays(f"{name} {reason}")
        why = f"is not affine in weights that can be centred ({operation.type})"
        return Stays(f"the output of {name} {why}")

    def _layer(self, operation):
        call = self._traced.call_of(operation)
        return call and call.layer

    def _at(self, operation):
        """Returns the name of the layer that an operation belongs to, or its own."""
        own = operation.name.rpartition("/")[2]
        return self._names.get(id(self._layer(operation)), own)
