"""The network: ConvPool-CNN-C, with a norm between each convolution and its activation."""

from typing import NamedTuple

import keras

from ..runs.networks import compile_classifier
from ..runs.run import Condition
from .weight_normalization import WeightNormalizedConv2D

CLASSES = 10
WIDTHS = (16, 32)  # the paper has 96 and 192
NOISE = 0.15
DROPOUT = 0.5


class Convolution(NamedTuple):
    """Size of a kernel, its padding, and which of the two widths it has."""

    size: int
    padding: str
    width: int


_FIRST = [Convolution(3, "same", 0)] * 3
_SECOND = [Convolution(3, "same", 1)] * 3
_THIRD = [Convolution(3, "valid", 1), Convolution(1, "same", 1), Convolution(1, "same", 1)]
SUMS = tuple(
    f"conv_{number}" for number in range(1, 1 + len(_FIRST + _SECOND + _THIRD))
)  # what norms normalize


@keras.saving.register_keras_serializable(package="experiments.cifar10")
class FlatThenLinear(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that stays the same for the first half of a training, and then falls linearly
    to 0.

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

    def get_config(self):
        return {"step_size": self.step_size, "updates": self.updates}


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
        for convolution in block:
            name = next(names)
            x = _convolve(
                x, condition, name, widths[convolution.width], convolution.size, convolution.padding
            )
            if condition.norm:
                x = condition.norm(f"{name}_norm")(x)
            x = keras.layers.LeakyReLU(0.1)(x)
    x = keras.layers.GlobalAveragePooling2D(keepdims=True)(x)
    x = _convolve(x, condition, "logits", CLASSES, 1, "same", last=True)
    if condition.options.get("normalize_logits"):
        x = condition.norm("logits_norm")(x)
    model = keras.Model(images, keras.layers.Flatten()(x))
    optimizer = keras.optimizers.Adam(FlatThenLinear(step_size, updates))
    return compile_classifier(
        model, optimizer, jit_compile=False
    )  # TensorFlow's convolutions are faster on a CPU


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
