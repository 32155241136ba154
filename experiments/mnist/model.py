"""The network: two hidden layers of 1,000 units, with a norm between each product and its ReLU."""

import keras

from ..runs.kinds import norm_conditions
from ..runs.networks import compile_classifier
from ..runs.run import Condition

HIDDEN = 1000
CLASSES = 10
EPSILON = 1e-6  # of all norms
SUMS = ("hidden_1", "hidden_2")  # layers whose outputs are normalized


def build_model(
    condition: Condition, step_size: float, seed: int, pixels: int, hidden: int = HIDDEN
) -> keras.Model:
    """Returns the compiled network of a condition.

    The norm has an offset, so the product before it has no bias. The seed alone determines the
    weights.

    Args:
        condition: Builds the norm. Its option `normalize_logits` puts one after the last product
            too.
        step_size: Learning rate of Adam.
        seed: Seed of the initial weights.
        pixels: Size of an image.
        hidden: Units of each hidden layer.
    """
    keras.utils.set_random_seed(seed)
    x = images = keras.Input((pixels,))
    for name in SUMS:
        x = keras.layers.Dense(hidden, use_bias=condition.norm is None, name=name)(x)
        if condition.norm:
            x = condition.norm(f"{name}_norm")(x)
        x = keras.layers.ReLU()(x)
    logits = keras.layers.Dense(CLASSES, name="logits")(x)
    if condition.options.get("normalize_logits"):
        logits = condition.norm("logits_norm")(logits)
    return compile_classifier(keras.Model(images, logits), keras.optimizers.Adam(step_size))


class UnbiasedBatchNormalization(keras.layers.Layer):
    """Normalizes every unit over the batch, with the unbiased variance.

    `y = (x - mean) / sqrt(variance + epsilon) * gamma + beta`. `keras.layers.BatchNormalization`
    divides the sum of squares by n; this layer divides by n - 1. Inference uses moving averages of
    the same statistics.

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


def _batch(name: str) -> keras.layers.Layer:
    return UnbiasedBatchNormalization(epsilon=EPSILON, name=name)


CONDITIONS = [
    *norm_conditions(EPSILON),
    Condition(
        "batchnorm", "BatchNorm, logits too", _batch, paper=True, options={"normalize_logits": True}
    ),
]
