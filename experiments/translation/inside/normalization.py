"""The kinds of normalization in the patched copy, and those that rows build.

In the copy, `baseline.make_baseline` renames `nmt/normalization.py` to `nmt/patched_normalization.py` and puts this
file in its place.
"""

import keras

from experiments.translation.plan import read_rows
from nmt import patched_normalization

_BUILDERS = {row.name: row.build for row in read_rows() if row.build}

EPSILON = patched_normalization.EPSILON
KINDS = (*patched_normalization.KINDS, *_BUILDERS)


def build_normalization(kind: str, units: int, name: str) -> keras.layers.Layer:
    """Builds the normalization of one `[..., units]` activation, as `nmt.normalization` does."""
    if kind not in _BUILDERS:
        return patched_normalization.build_normalization(kind, units, name)
    layer = _BUILDERS[kind](name)
    layer.build((None, units))
    return layer
