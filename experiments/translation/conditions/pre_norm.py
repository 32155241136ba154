"""The conditions of experiments/PLAN-pre-norm.md: what sets RMSNorm apart from LayerNorm, one
part at a time."""

import keras

from rmsnorm_tf import RMSNormalization

from ..condition import Condition

CORPUS = "multi30k_pre_norm"
_EPSILON = 1e-5  # of the patched kinds


def _without_offset(name: str) -> keras.layers.Layer:
    return keras.layers.LayerNormalization(epsilon=_EPSILON, center=False, name=name)


def _with_offset(name: str) -> keras.layers.Layer:
    return RMSNormalization(epsilon=_EPSILON, center=True, name=name)


def _centred_positions(name: str) -> keras.layers.Layer:
    """Returns an RMSNorm.

    The model's sinusoids lose their mean, because its norms are built before it is traced.
    """
    from ..inside.centred_positions import centre_positions

    centre_positions()
    return RMSNormalization(epsilon=_EPSILON, name=name)


_BUILT = {
    "layernorm-no-offset": ("LayerNorm without offset", _without_offset),
    "rmsnorm-offset": ("RMSNorm with an offset", _with_offset),
    "rmsnorm-centred-positions": ("RMSNorm, centred sinusoids", _centred_positions),
}


def _row(
    name: str, label: str, corpus: str = CORPUS, seeds: int = 4, first_seed: int = 301, **norm
) -> Condition:
    which = {"corpora": (corpus,), "seeds": seeds, "first_seed": first_seed}
    return Condition(f"{corpus}-{name}", label, model_type="transformer", **which, **norm)


CONDITIONS = [
    *(
        _row(kind, label, kind=kind)
        for kind, label in (("layernorm", "LayerNorm"), ("rmsnorm", "RMSNorm"))
    ),
    *(_row(kind, label, build=build) for kind, (label, build) in _BUILT.items()),
    _row(
        "rmsnorm-offset",
        "RMSNorm with an offset, pre-norm",
        "multi30k_pre",
        5,
        101,
        build=_with_offset,
    ),
]
