"""The kinds of normalization of Zhang & Sennrich (2019), section 6.4, and three over other axes.

As in the paper's code, their statistics run over height and width, separately for each channel.
That is instance normalization; the last three conditions normalize over the channels, or over
everything. Epsilon is the same for all.

A condition in a file added here is trained and reported with the rest.
"""

import keras

from rmsnorm_tf import RMSNormalization

from ...runs.run import Condition

EPSILON = 1e-6
SPACE = (1, 2)
EVERYTHING = (1, 2, 3)


@keras.saving.register_keras_serializable(package="experiments.cifar10")
class OverPositions(keras.layers.Layer):
    """Normalizes each channel over the first positions of an image, row by row from the
    top.

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
        flat = keras.ops.reshape(
            inputs, (-1, height * width, channels)
        )  # [batch, positions, channels]
        return keras.ops.reshape(self.norm(flat), (-1, height, width, channels))


def _rms(axis):
    return lambda name: RMSNormalization(
        axis=axis, scale_axis=-1, epsilon=EPSILON, center=True, name=name
    )


def _layer(groups):
    """LayerNorm over height and width for each of some groups of channels; -1 makes each channel a group."""
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
    Condition("rmsnorm-all", "RMSNorm over everything", _rms(EVERYTHING)),
]
