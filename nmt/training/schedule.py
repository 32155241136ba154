"""The learning rate over time, as in Nematus, and its reduction on a plateau of the validation loss."""

import keras

from ..config import Config


class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """The learning rate of a configuration over time, times a factor that changes between updates.

    The schedule `warmup-plateau-decay` rises linearly to a peak, stays there, then falls with 1 / sqrt(update).
    `transformer` does so without a plateau; its peak follows from the size of the model. `constant` is a schedule too:
    Keras stores a plain number in a variable of the optimizer, so a resumed training could not change it.

    Attributes:
        factor: The factor. Its value follows from the validations, so no checkpoint holds it.

    Reference: Vaswani et al. (2017), arXiv:1706.03762, section 5.3, for `transformer`.
    """

    def __init__(self, config: Config):
        self.factor = keras.Variable(1.0, trainable=False, dtype="float32", name="learning_rate_factor")
        self._is_constant = config.learning_schedule == "constant"
        self._peak, self._warmup, self._plateau = config.learning_rate, config.warmup_steps, config.plateau_steps
        if config.learning_schedule == "transformer":
            self._peak, self._plateau = (config.state_size * config.warmup_steps) ** -0.5, 0

    def __call__(self, step):
        """Returns the learning rate after `step` updates, for the next one."""
        if self._is_constant:
            return self._peak * self.factor.value
        number = keras.ops.cast(step, "float32") + 1.0
        decay = keras.ops.sqrt((self._warmup + self._plateau) / number)
        rate = self._peak * keras.ops.minimum(keras.ops.minimum(number / self._warmup, 1.0), decay)
        return rate * self.factor.value
