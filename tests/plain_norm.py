"""An RMS norm that is none of Keras's."""

import keras
from keras import layers


@keras.saving.register_keras_serializable(package="tests")
class PlainRMSNorm(layers.Layer):
    """An RMS norm as other libraries write it."""

    def __init__(self, epsilon=1e-5, use_gain=True, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.use_gain = use_gain

    def build(self, shape):
        self.gain = self.add_weight(shape=(shape[-1],)) if self.use_gain else 1.0

    def call(self, x):
        return (
            x * keras.ops.rsqrt(keras.ops.mean(x * x, -1, keepdims=True) + self.epsilon) * self.gain
        )

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon, "use_gain": self.use_gain}
