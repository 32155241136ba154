"""The kinds of normalization of both papers as layers over the units, with an offset."""

from functools import partial

import keras

from rmsnorm_tf import RMSNormalization

from .trial import TrialRow


def norm_rows(epsilon: float) -> list[TrialRow]:
    """Returns a row for each kind; epsilon is the same for all."""
    rms = partial(RMSNormalization, epsilon=epsilon, center=True)
    return [
        TrialRow("none", "without a norm", None, paper=True),
        TrialRow(
            "layernorm",
            "LayerNorm",
            lambda name: keras.layers.LayerNormalization(epsilon=epsilon, name=name),
            paper=True,
        ),
        TrialRow("rmsnorm", "RMSNorm", lambda name: rms(name=name), paper=True),
        TrialRow("prmsnorm", "pRMSNorm, p = 6.25%", lambda name: rms(partial=0.0625, name=name), paper=True),
    ]
