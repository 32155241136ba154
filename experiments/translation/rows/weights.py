"""Weight normalization, which the paper compares with in its Theano version of Nematus."""

from ..row import Row

ROWS = [
    Row(
        "weightnorm",
        "WeightNorm",
        kind="none",
        seeds=3,
        program="experiments.translation.inside.weight_normalized",
    )
]
