"""The paper's Table 4: a Transformer with each kind after the residual sums.

Two kinds stand before them too. A condition without a norm takes steps smaller than those of a
grid: only large ones might make it diverge. Two conditions have more updates, because models with
norms after the residual sums learn slowly.
"""

from ..condition import Condition

_KINDS = {
    "none": "without a norm",
    "layernorm": "LayerNorm",
    "rmsnorm": "RMSNorm",
    "prmsnorm": "pRMSNorm",
}


_LONGER = {"learning_rate": 0.003, "finish_after": 1800, "valid_freq": 300}


def _condition(
    position: str, kind: str, name: str = "", label: str = "", seeds: int = 3, **options: float
) -> Condition:
    """Returns a condition.

    `name` and `label` are added to its own, and `options` to that of its position.
    """
    return Condition(
        f"{position}-{kind}{name}",
        f"{_KINDS[kind]} ({position}{label})",
        kind=kind,
        seeds=seeds,
        options={"transformer_norm_position": position, **options},
        model_type="transformer",
    )


CONDITIONS = [
    *(_condition("post", kind) for kind in _KINDS),
    *(_condition("pre", kind) for kind in ("layernorm", "rmsnorm")),
    _condition("post", "none", "-small-steps", ", small steps", seeds=1, learning_rate=0.0001),
    *(
        _condition("post", kind, "-longer", ", 1,800 updates", **_LONGER)
        for kind in ("layernorm", "rmsnorm")
    ),
]
