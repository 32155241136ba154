"""A convolution with weight normalization."""

import keras


@keras.saving.register_keras_serializable(package="experiments.cifar10")
class WeightNormalizedConv2D(keras.layers.Layer):
    """A convolution whose kernel is `W = g * V / ||V||`, with the norm over the inputs of each
    output channel.

    The direction V starts around 0 with a standard deviation of 0.05, the gain g at 1.

    Args:
        filters: Output channels.
        kernel_size: Height and width of the kernel.
        padding: `same` or `valid`.
        **kwargs: Arguments of every Keras layer.

    Reference:
        Salimans & Kingma 2016, arXiv 1602.07868, equation 2.
    """

    def __init__(self, filters: int, kernel_size: int, padding: str, **kwargs):
        super().__init__(**kwargs)
        self.filters = filters
        self.kernel_size = kernel_size
        self.padding = padding

    def build(self, input_shape):
        shape = (self.kernel_size, self.kernel_size, input_shape[-1], self.filters)
        normal = keras.initializers.RandomNormal(stddev=0.05)
        self.direction = self.add_weight(shape=shape, initializer=normal, name="direction")
        self.gain = self.add_weight(shape=(self.filters,), initializer="ones", name="gamma")
        self.bias = self.add_weight(shape=(self.filters,), initializer="zeros", name="bias")

    @property
    def kernel(self):
        """The kernel, `[height, width, input channels, filters]`."""
        square = keras.ops.sum(keras.ops.square(self.direction), axis=(0, 1, 2))  # [filters]
        return self.direction * (self.gain * keras.ops.rsqrt(square))

    def call(self, inputs):
        return keras.ops.conv(inputs, self.kernel, padding=self.padding) + self.bias
