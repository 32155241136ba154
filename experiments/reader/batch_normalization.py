"""An LSTM with batch normalization inside, and the norm in it."""

from typing import Any

import keras
from keras import ops

GAIN = 0.1  # initial gain; with 1, the gradient vanishes over time


@keras.saving.register_keras_serializable(package="experiments.reader")
class StepNormalization(keras.layers.Layer):
    """Normalizes every unit over the words that a batch has at one time step.

        N(x) = (x - mean) / sqrt(variance + epsilon) * gamma + beta

    Padding does not enter the statistics. Inference uses one mean and one variance for all time
    steps: moving averages of the statistics of the time steps, weighted by their numbers of words.

    Args:
        epsilon: Added to the variance, inside the root. Default: 1e-5.
        momentum: Decay of the moving averages at a time step without padding. Default: 0.999.
        center: Whether there is a beta. Default: False.
        **kwargs: Arguments of every Keras layer.

    Reference: Cooijmans et al. 2016, arXiv 1603.09025, equation 5. There, every time step has its
        own moving averages.
    """

    def __init__(
        self, epsilon: float = 1e-5, momentum: float = 0.999, center: bool = False, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.momentum = momentum
        self.center = center

    def build(self, input_shape, *_):
        units = (input_shape[-1],)
        few = keras.initializers.Constant(1e-6)  # the weight of the initial variance, 1
        self.gamma = self.add_weight(
            shape=units, initializer=keras.initializers.Constant(GAIN), name="gamma"
        )
        self.beta = (
            self.add_weight(shape=units, initializer="zeros", name="beta") if self.center else None
        )
        self.weight = self.add_weight(shape=(), initializer=few, trainable=False, name="weight")
        self.mean = self.add_weight(shape=units, initializer="zeros", trainable=False, name="mean")
        self.variance = self.add_weight(
            shape=units, initializer=few, trainable=False, name="variance"
        )

    def call(self, inputs, seen, training=False):
        """Normalizes `[batch, units]`, given `[batch, 1]`: 1 where there is a word, 0 at
        padding."""
        mean = self.mean / self.weight
        variance = self.variance / self.weight
        if training:
            words = ops.maximum(ops.sum(seen), 1)
            mean = ops.sum(seen * inputs, 0) / words  # [units]
            variance = ops.sum(seen * ops.square(inputs - mean), 0) / words
            rate = (1 - self.momentum) * ops.mean(seen)
            for average, value in (
                (self.weight, 1.0),
                (self.mean, mean),
                (self.variance, variance),
            ):
                average.assign(average + rate * (value - average))
        outputs = (inputs - mean) * (ops.rsqrt(variance + self.epsilon) * self.gamma)
        return outputs if self.beta is None else outputs + self.beta


@keras.saving.register_keras_serializable(package="experiments.reader")
class BatchNormLSTMCell(keras.layers.LSTMCell):
    """An LSTM that normalizes its projected inputs, its projected state and its cell state over the
    batch.

        i, f, c~, o = split(N(x W) + N(h U) + b)
        c' = sigmoid(f) * c + sigmoid(i) * tanh(c~)
        h' = sigmoid(o) * tanh(N(c'))

    The inputs are `[batch, inputs + 1]`: x, and 1 where there is a word or 0 at padding. Padding
    does not enter the statistics; `keras.layers.RNN` with a mask ignores the results for it.

    >>> lstm = keras.layers.RNN(BatchNormLSTMCell(4), return_sequences=True)
    >>> lstm(ops.ones((2, 5, 3 + 1))).shape
    TensorShape([2, 5, 4])

    Args:
        units: Size of the states h and c.
        epsilon: Added to the variances, inside the root. Default: 1e-5.
        **kwargs: As in `keras.layers.LSTMCell`, without dropout.

    Reference:
        Cooijmans et al. 2016, arXiv 1603.09025, equations 6 to 8.
    """

    def __init__(self, units: int, epsilon: float = 1e-5, **kwargs: Any):
        super().__init__(units, **kwargs)
        self.epsilon = epsilon
        self.input_norm = StepNormalization(epsilon, name="input_norm")
        self.state_norm = StepNormalization(epsilon, name="state_norm")
        self.carry_norm = StepNormalization(epsilon, center=True, name="carry_norm")

    def build(self, input_shape):
        batch, size = input_shape
        super().build((batch, size - 1))
        for norm, blocks in ((self.input_norm, 4), (self.state_norm, 4), (self.carry_norm, 1)):
            norm.build((batch, blocks * self.units))

    def call(self, inputs, states, training=False):
        h, c = states
        x = inputs[:, :-1]
        seen = inputs[:, -1:]
        of_input = self.input_norm(ops.matmul(x, self.kernel), seen, training=training)
        of_state = self.state_norm(ops.matmul(h, self.recurrent_kernel), seen, training=training)
        i, f, proposal, o = ops.split(of_input + of_state + self.bias, 4, -1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(proposal)
        h = ops.sigmoid(o) * ops.tanh(self.carry_norm(c, seen, training=training))
        return h, [h, c]

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
