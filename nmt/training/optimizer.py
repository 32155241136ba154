"""Applies Adam with a learning rate schedule that is reduced on plateaus of the loss."""

import math
from collections.abc import Sequence

import keras
import tensorflow as tf

from ..config import Config


class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of a configuration over time, times a factor that changes between updates.

    The schedule `warmup-plateau-decay` rises linearly to a peak, stays there, then falls with 1 /
    sqrt(update). `transformer` does so without a plateau; its peak follows from the size of the
    model. `constant` is an endless plateau, not a plain number: Keras would store that in a
    variable, and a resumed training could not change it.

    Attributes:
        factor: The factor. Its value follows from the validations, so no checkpoint holds it.

    Reference: Vaswani et al. (2017), arXiv:1706.03762, section 5.3, for `transformer`.
    """

    def __init__(self, config: Config):
        self.factor = keras.Variable(
            1.0, trainable=False, dtype="float32", name="learning_rate_factor"
        )
        self._peak = config.learning_rate
        self._warmup = config.warmup_steps
        self._plateau = config.plateau_steps
        if config.learning_schedule == "transformer":
            self._peak = (config.state_size * config.warmup_steps) ** -0.5
            self._plateau = 0
        elif config.learning_schedule == "constant":
            self._warmup = 1
            self._plateau = math.inf

    def __call__(self, step):
        """Returns the learning rate after `step` updates, for the next one."""
        number = keras.ops.cast(step, "float32") + 1.0
        decay = keras.ops.sqrt((self._warmup + self._plateau) / number)
        rate = self._peak * keras.ops.minimum(keras.ops.minimum(number / self._warmup, 1.0), decay)
        return rate * self.factor.value


class Adam(keras.optimizers.Adam):
    """Keras's Adam with the options of a configuration.

    One operation of TensorFlow updates each variable. Those of Keras, a dozen, take seconds more to
    trace and compile.
    """

    def __init__(self, config: Config, variables: Sequence[keras.Variable]):
        rate = LearningRate(config)
        super().__init__(
            rate,
            beta_1=config.adam_beta1,
            beta_2=config.adam_beta2,
            epsilon=config.adam_epsilon,
            weight_decay=config.weight_decay or None,
            name="adam",  # Keras's default names are numbered, and checkpoints store the name
        )
        self.rate = rate
        # Decay would take gains and biases away from where they have no effect.
        self.exclude_from_weight_decay([each for each in variables if len(each.shape) < 2])
        self.build(variables)

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable. The gradient is dense."""
        index = self._get_variable_index(variable)
        number = tf.cast(self.iterations.value + 1, tf.float32)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=self.beta_1**number,
            beta2_power=self.beta_2**number,
            lr=learning_rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )
