"""The network: ConvPool-CNN-C, with a norm between each convolution and its activation."""

import keras

from rmsnorm_tf import RMSNormalization

from ..runs.networks import compile_classifier
from ..runs.run import Condition

CLASSES = 10
WIDTHS = (16, 32)  # the paper has 96 and 192
NOISE = 0.15
DROPOUT = 0.5
EPSILON = 1e-6  # of all norms
SPACE = (1, 2)
# Of each convolution, the size of its kernel, its padding, and which of the two widths it has.
_FIRST = [(3, "same", 0)] * 3
_SECOND = [(3, "same", 1)] * 3
_THIRD = [(3, "valid", 1), (1, "same", 1), (1, "same", 1)]
# What norms normalize.
SUMS = tuple(f"conv_{number}" for number in range(1, 1 + len(_FIRST + _SECOND + _THIRD)))


class WeightNormalizedConv2D(keras.layers.Layer):
    """Convolves with a kernel `W = g * V / ||V||`.

    The norm is over the inputs of each output channel. The direction V starts around 0 with a
    standard deviation of 0.05, the gain g at 1.

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


class FlatThenLinear(keras.optimizers.schedules.LearningRateSchedule):
    """Keeps the learning rate for the first half of a training, then lowers it linearly to 0.

    >>> [float(FlatThenLinear(2.0, 4)(update)) for update in (0, 2, 3, 4)]
    [2.0, 2.0, 1.0, 0.0]

    Args:
        step_size: The first learning rate.
        updates: Updates of the training.
    """

    def __init__(self, step_size: float, updates: int):
        self.step_size = step_size
        self.updates = updates

    def __call__(self, step):
        left = (self.updates - keras.ops.cast(step, "float32")) / (self.updates / 2)
        return self.step_size * keras.ops.clip(left, 0.0, 1.0)


def build_model(
    condition: Condition,
    step_size: float,
    seed: int,
    updates: int,
    pixels: int,
    widths: tuple[int, int] = WIDTHS,
) -> keras.Model:
    """Returns the compiled network of a condition.

    The norm has an offset, so the convolution before it has no bias. The seed alone determines the
    initial kernels; with weight normalization, they are the directions.

    Args:
        condition: Builds the norm. Its option `weights` normalizes the weights instead;
            `normalize_logits` normalizes the logits too.
        step_size: First learning rate of Adam.
        seed: Seed of the initial weights, the noise and dropout.
        updates: Updates of the training.
        pixels: Height and width of an image.
        widths: Channels of the first three convolutions, and of the others.
    """
    keras.utils.set_random_seed(seed)
    names = iter(SUMS)
    x = images = keras.Input((pixels, pixels, 3))
    x = keras.layers.GaussianNoise(NOISE)(x)
    for block in (_FIRST, _SECOND, _THIRD):
        if block is not _FIRST:
            x = keras.layers.Dropout(DROPOUT)(keras.layers.MaxPooling2D()(x))
        for size, padding, width in block:
            name = next(names)
            x = _convolve(x, condition, name, widths[width], size, padding)
            if condition.norm:
                x = condition.norm(f"{name}_norm")(x)
            x = keras.layers.LeakyReLU(0.1)(x)
    x = keras.layers.GlobalAveragePooling2D(keepdims=True)(x)
    x = _convolve(x, condition, "logits", CLASSES, 1, "same", last=True)
    if condition.options.get("normalize_logits"):
        x = condition.norm("logits_norm")(x)
    model = keras.Model(images, keras.layers.Flatten()(x))
    optimizer = keras.optimizers.Adam(FlatThenLinear(step_size, updates))
    # TensorFlow's convolutions are faster on a CPU.
    return compile_classifier(model, optimizer, jit_compile=False)


def _convolve(
    x, condition: Condition, name: str, filters: int, size: int, padding: str, last: bool = False
):
    if condition.options.get("weights"):
        return WeightNormalizedConv2D(filters, size, padding, name=name)(x)
    bias = last or condition.norm is None
    kernel = keras.initializers.RandomNormal(stddev=0.05)
    layer = keras.layers.Conv2D(
        filters, size, padding=padding, use_bias=bias, kernel_initializer=kernel, name=name
    )
    return layer(x)


class OverPositions(keras.layers.Layer):
    """Normalizes each channel over the first positions of an image, row by row from the top.

    Args:
        partial: Share of the positions that the mean square takes.
        **kwargs: Arguments of every Keras layer.
    """

    def __init__(self, partial: float, **kwargs):
        super().__init__(**kwargs)
        self.partial = partial
        self.norm = RMSNormalization(
            axis=1, scale_axis=-1, partial=partial, epsilon=EPSILON, center=True, name=self.name
        )

    def build(self, input_shape):
        batch, height, width, channels = input_shape
        self.norm.build((batch, height * width, channels))

    def call(self, inputs):
        height, width, channels = inputs.shape[1:]
        # [batch, positions, channels]
        flat = keras.ops.reshape(inputs, (-1, height * width, channels))
        return keras.ops.reshape(self.norm(flat), (-1, height, width, channels))


def _rms(axis):
    return lambda name: RMSNormalization(
        axis=axis, scale_axis=-1, epsilon=EPSILON, center=True, name=name
    )


def _layer(groups):
    """Returns LayerNorm over height and width for each of some groups of channels.

    -1 makes each channel a group.
    """
    return lambda name: keras.layers.GroupNormalization(groups, epsilon=EPSILON, name=name)


def _batch(name: str) -> keras.layers.Layer:
    return keras.layers.BatchNormalization(momentum=0.9, epsilon=EPSILON, name=name)


CONDITIONS = [
    Condition("none", "without a norm", None, paper=True),
    Condition("layernorm", "LayerNorm", _layer(-1), paper=True),
    Condition("rmsnorm", "RMSNorm", _rms(SPACE), paper=True),
    Condition(
        "prmsnorm", "pRMSNorm, p = 12.5%", lambda name: OverPositions(0.125, name=name), paper=True
    ),
    Condition(
        "batchnorm", "BatchNorm, logits too", _batch, paper=True, options={"normalize_logits": True}
    ),
    Condition("weightnorm", "WeightNorm", None, paper=True, options={"weights": True}),
    Condition("rmsnorm-channels", "RMSNorm over channels", _rms(-1)),
    Condition("layernorm-all", "LayerNorm over everything", _layer(1)),
    Condition("rmsnorm-all", "RMSNorm over everything", _rms((1, 2, 3))),
]
