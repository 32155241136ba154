"""Learning rates over time, as in Nematus, and their reduction on a plateau of the validation loss."""

import keras

from ..config import Config


class WarmupPlateauDecay(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises linearly to a peak, stays there, then falls with 1 / sqrt(update).

    Args:
        peak: The highest learning rate.
        warmup: The update that reaches the peak, counted from 1.
        plateau: Number of further updates at the peak.
    """

    def __init__(self, peak: float, warmup: int, plateau: int = 0):
        self.peak, self.warmup, self.plateau = peak, warmup, plateau

    def __call__(self, step):
        """Returns the learning rate after `step` updates, for the next one."""
        number = keras.ops.cast(step, "float32") + 1.0
        decay = keras.ops.sqrt((self.warmup + self.plateau) / number)
        return self.peak * keras.ops.minimum(keras.ops.minimum(number / self.warmup, 1.0), decay)


class Constant(keras.optimizers.schedules.LearningRateSchedule):
    """A constant learning rate.

    Keras stores a plain number in a variable of the optimizer, so a resumed training could not change it.
    """

    def __init__(self, rate: float):
        self.rate = rate

    def __call__(self, step):
        return self.rate


class Reducible(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate over time, times a factor that changes between updates.

    Args:
        schedule: The learning rate without the factor.

    Attributes:
        factor: The factor. Its value follows from the validations, so no checkpoint holds it.
    """

    def __init__(self, schedule: keras.optimizers.schedules.LearningRateSchedule):
        self.schedule = schedule
        self.factor = keras.Variable(1.0, trainable=False, dtype="float32", name="learning_rate_factor")

    def __call__(self, step):
        return self.schedule(step) * self.factor.value


def learning_rate(config: Config) -> keras.optimizers.schedules.LearningRateSchedule:
    """Returns the learning rate of a configuration over time.

    `transformer` is the schedule of Vaswani et al. (2017), arXiv:1706.03762, section 5.3.
    """
    if config.learning_schedule == "constant":
        return Constant(config.learning_rate)
    if config.learning_schedule == "transformer":
        return WarmupPlateauDecay((config.state_size * config.warmup_steps) ** -0.5, config.warmup_steps)
    return WarmupPlateauDecay(config.learning_rate, config.warmup_steps, config.plateau_steps)
