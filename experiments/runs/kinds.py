"""The kinds of normalization of both papers, as layers and inside recurrent layers."""

from functools import partial
from typing import Any

import keras

from nmt.errors import UserError
from rmsnorm_tf import RMSNormalization

from .run import Condition

EPSILON = 1e-5  # of all recurrent layers
_LABELS = {
    "none": "without a norm",
    "layernorm": "LayerNorm",
    "rmsnorm": "RMSNorm",
    "prmsnorm": "pRMSNorm, p = 6.25%",
}
_PARTIAL = 0.0625

_OPTIONS = {
    "none": {"normalization": None},
    "layernorm": {"normalization": "layer", "epsilon": EPSILON},
    "rmsnorm": {"normalization": "rms", "epsilon": EPSILON},
    "prmsnorm": {"normalization": "rms", "partial": _PARTIAL, "epsilon": EPSILON},
}
# The kinds inside `RMSNormGRU` and `RMSNormLSTM`, whose arguments are the options.
CELL_CONDITIONS = tuple(
    Condition(name, label, None, paper=True, options=_OPTIONS[name])
    for name, label in _LABELS.items()
)


def cell_options(condition: Condition) -> dict[str, Any]:
    """Returns the arguments that a condition gives to the recurrent layers of a task.

    Raises:
        UserError: The condition has a norm of its own, which these layers do not take.
    """
    if condition.norm:
        raise UserError(
            f"condition {condition.name}: recurrent layers build their norms by themselves; give "
            "options= instead of norm"
        )
    return dict(condition.options)


def norm_conditions(epsilon: float) -> list[Condition]:
    """Returns a condition for each kind as a layer over the units, with an offset.

    Epsilon is the same for all.
    """
    rms = partial(RMSNormalization, epsilon=epsilon, center=True)
    norms = {
        "none": None,
        "layernorm": lambda name: keras.layers.LayerNormalization(epsilon=epsilon, name=name),
        "rmsnorm": lambda name: rms(name=name),
        "prmsnorm": lambda name: rms(partial=_PARTIAL, name=name),
    }
    return [Condition(name, label, norms[name], paper=True) for name, label in _LABELS.items()]
