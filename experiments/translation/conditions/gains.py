"""L2-Norm with gains that begin at sqrt(n), so that its first outputs are those of RMSNorm."""

import keras
from keras import ops

from ..condition import Condition


@keras.saving.register_keras_serializable(package="experiments.translation")
class ScaledL2Normalization(keras.layers.Layer):
    """Computes `x / sqrt(sum(x^2) + n epsilon) * gain` over the last axis of n entries.

    The gains begin at `sqrt(n)`.

    Args:
        epsilon: Added to the mean square, as in RMSNorm.
        **kwargs: Arguments of every Keras layer.

    Reference: Zhang & Sennrich (2019), arXiv:1910.07467, Table 2, for L2-Norm.
    """

    def __init__(self, epsilon: float = 1e-5, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape):
        root = input_shape[-1] ** 0.5
        self.gain = self.add_weight(
            name="gain", shape=input_shape[-1:], initializer=keras.initializers.Constant(root)
        )
        self.built = True

    def call(self, inputs):
        x = ops.cast(inputs, "float32")
        squares = ops.sum(ops.square(x), -1, keepdims=True) + inputs.shape[-1] * self.epsilon
        return ops.cast(x * ops.rsqrt(squares) * self.gain, inputs.dtype)


CONDITIONS = [
    Condition(
        "l2norm-scaled",
        "L2-Norm (gains from sqrt(n))",
        build=lambda name: ScaledL2Normalization(name=name),
        seeds=3,
    )
]
