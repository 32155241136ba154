"""Batch normalization with the unbiased variance, which Ba et al. (2016) use for batches of 4."""

import keras


@keras.saving.register_keras_serializable(package="experiments.mnist")
class UnbiasedBatchNormalization(keras.layers.Layer):
    """Normalizes every unit over the batch, `y = (x - mean) / sqrt(variance + epsilon) * gamma +
    beta`.

    `keras.layers.BatchNormalization` divides the sum of squares by n; this layer divides by n - 1.
    Inference uses moving averages of the same statistics.

    >>> layer = UnbiasedBatchNormalization()
    >>> layer(keras.ops.array([[0.0], [1.0], [2.0]]), training=True).numpy().round(2).tolist()
    [[-1.0], [0.0], [1.0]]

    Args:
        epsilon: Added to the variance, inside the root. Default: 1e-6.
        momentum: Decay of the moving averages in an update. Default: 0.99.
        **kwargs: Arguments of every Keras layer.

    Reference:
        Ioffe & Szegedy 2015, arXiv 1502.03167.
    """

    def __init__(self, epsilon: float = 1e-6, momentum: float = 0.99, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.momentum = momentum

    def build(self, input_shape):
        units = (input_shape[-1],)
        self.gamma = self.add_weight(shape=units, initializer="ones", name="gamma")
        self.beta = self.add_weight(shape=units, initializer="zeros", name="beta")
        self.mean = self.add_weight(shape=units, initializer="zeros", trainable=False, name="mean")
        self.variance = self.add_weight(
            shape=units, initializer="ones", trainable=False, name="variance"
        )

    def call(self, inputs, training=False):
        mean = self.mean
        variance = self.variance
        if training:
            size = keras.ops.cast(keras.ops.shape(inputs)[0], inputs.dtype)
            mean, variance = keras.ops.moments(inputs, axes=0)  # [units]
            variance = variance * size / (size - 1)
            for average, value in ((self.mean, mean), (self.variance, variance)):
                average.assign(self.momentum * average + (1 - self.momentum) * value)
        return (inputs - mean) * keras.ops.rsqrt(variance + self.epsilon) * self.gamma + self.beta
