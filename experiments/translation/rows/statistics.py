"""Whether the epsilon of a norm matters, and whether the precision of its statistic does."""

import keras
from keras import ops

from rmsnorm_tf import RMSNormalization

from ..row import Row

EPSILONS = (1e-8, 1e-3)  # the others have 1e-5


@keras.saving.register_keras_serializable(package="experiments.translation")
class RoundedRMSNormalization(RMSNormalization):
    """RMSNorm whose inputs, squares and mean square are rounded to bfloat16."""

    def call(self, inputs):
        x = ops.cast(inputs, "bfloat16")
        mean_square = ops.mean(ops.square(x), -1, keepdims=True)
        y = ops.cast(x, "float32") * ops.rsqrt(ops.cast(mean_square, "float32") + self.epsilon)
        return ops.cast(y * self.scale, inputs.dtype)


def _layernorm(epsilon: float):
    return lambda name: keras.layers.LayerNormalization(epsilon=epsilon, name=name)


def _rmsnorm(epsilon: float):
    return lambda name: RMSNormalization(epsilon=epsilon, name=name)


_KINDS = {"layernorm": ("LayerNorm", _layernorm), "rmsnorm": ("RMSNorm", _rmsnorm)}

ROWS = [
    Row(
        f"{kind}-epsilon-{epsilon:g}", f"{label} (epsilon {epsilon:g})", build=norm(epsilon), seeds=3, step_size_of=kind
    )
    for epsilon in EPSILONS
    for kind, (label, norm) in _KINDS.items()
] + [
    Row(
        "rmsnorm-rounded",
        "RMSNorm (statistic in bfloat16)",
        build=lambda name: RoundedRMSNormalization(epsilon=1e-5, name=name),
        seeds=3,
        step_size_of="rmsnorm",
    )
]
