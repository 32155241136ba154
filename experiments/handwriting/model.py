"""The network: two LSTMs that predict the next point of a pen.

The prediction is a mixture of normal distributions.
"""

import math

import keras
from keras import ops

from rmsnorm_tf import RMSNormLSTM

from ..runs.kinds import cell_options
from ..runs.run import Condition

UNITS = 64  # of each of two LSTMs; the paper has three of 400
COMPONENTS = 20  # of the mixture
CLIP = 10.0  # of the global norm of the gradient
LEAST_DEVIATION = (
    0.01  # about half a unit of the pen, whose offsets are whole numbers: densities have a bound
)
LSTMS = ("first", "second")


def build_model(
    condition: Condition, step_size: float, seed: int, length: int, units: int = UNITS
) -> keras.Model:
    """Returns the compiled network of a condition.

    It maps the points so far to the distribution of the next one. Both LSTMs read the point, and
    the output reads both LSTMs. The output is `[batch, length, 1 + 6 * COMPONENTS]`, as
    `negative_log_likelihood` takes it. The seed alone determines the initial weights.

    Args:
        condition: Its options are arguments of the LSTMs.
        length: Number of points.
        units: Size of the LSTMs.

    Reference: Graves (2013), arXiv:1308.0850, section 4. Its LSTM cells have peepholes too.
    """
    keras.utils.set_random_seed(seed)
    points = keras.Input((length, 3), name="points")
    first = RMSNormLSTM(units, return_sequences=True, name="first", **cell_options(condition))(
        points
    )
    joined = keras.layers.Concatenate()([points, first])
    second = RMSNormLSTM(units, return_sequences=True, name="second", **cell_options(condition))(
        joined
    )
    mixture = keras.layers.Dense(1 + 6 * COMPONENTS, name="mixture")(
        keras.layers.Concatenate()([first, second])
    )
    model = keras.Model(points, mixture)
    optimizer = keras.optimizers.Adam(step_size, global_clipnorm=CLIP)
    model.compile(optimizer=optimizer, loss=negative_log_likelihood, jit_compile=True)
    return model


def negative_log_likelihood(points, outputs):
    """Returns the negative log-likelihood of each point, in nats, `[batch, length]`.

    Args:
        points: `[batch, length, 3]`: two offsets, and 1 if the pen goes up.
        outputs: `[batch, length, 1 + 6 * COMPONENTS]`: the logit of the pen, then for each
            component the logit of its weight, two means, two logarithms of standard deviations, and
            the inverse hyperbolic tangent of the correlation.

    Reference: Graves (2013), arXiv:1308.0850, equations 24 to 26.
    """
    pen, logits, *_ = parts = _split(outputs)
    weights = ops.log_softmax(logits, -1)
    offsets = ops.logsumexp(weights + _log_densities(points[..., :2], *parts[2:]), -1)
    up = points[..., 2]
    logit = pen[..., 0]
    return ops.softplus(logit) - up * logit - offsets


def _split(outputs):
    """Returns the logits of the pen `[..., 1]`, then six tensors `[..., COMPONENTS]`."""
    parts = ops.split(outputs, [1 + number * COMPONENTS for number in range(6)], -1)
    parts[4:6] = [ops.maximum(part, math.log(LEAST_DEVIATION)) for part in parts[4:6]]
    return parts


def _log_densities(offsets, x_mean, y_mean, x_log_deviation, y_log_deviation, correlation):
    """Returns the log density of each component at the offsets, `[..., COMPONENTS]`."""
    x, y = (
        (offsets[..., axis, None] - mean) * ops.exp(-log_deviation)
        for axis, mean, log_deviation in (
            (0, x_mean, x_log_deviation),
            (1, y_mean, y_log_deviation),
        )
    )
    size = ops.abs(correlation)
    log_rest = 2 * (math.log(2) - size - ops.softplus(-2 * size))  # log(1 - tanh(correlation)**2)
    distance = (x * x + y * y - 2 * ops.tanh(correlation) * x * y) * ops.exp(-log_rest)
    return (
        -0.5 * distance - math.log(2 * math.pi) - x_log_deviation - y_log_deviation - 0.5 * log_rest
    )
