"""The paper's Figures 3 and 4: pRMSNorm by p, and initial weights around 0.2.

The points 6.25% and 100% of Figure 3 are pRMSNorm and RMSNorm of Table 2. In Figure 4, the weights
are all, the embeddings, or the matrices before a norm.
"""

import itertools

from rmsnorm_tf import RMSNormalization

from ..condition import Condition

_KINDS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}
_MOVED = {"all": "", "embeddings": " of embeddings", "matrices": " of other matrices"}
_CENTRE = 0.2


def _moved(kind: str, moved: str) -> Condition:
    name = f"{kind}-centre" + ("" if moved == "all" else f"-{moved}")
    label = f"{_KINDS[kind]} (centre {_CENTRE:g}{_MOVED[moved]})"
    seeds = 5 if moved == "all" else 3  # the paper's conditions
    return Condition(
        name, label, kind=kind, seeds=seeds, centre=_CENTRE, moved=moved, step_size_of=kind
    )


def _partial(p: float) -> Condition:
    def build(name: str) -> RMSNormalization:
        return RMSNormalization(partial=p, epsilon=1e-5, name=name)

    return Condition(
        f"partial-{p:g}",
        f"pRMSNorm (p = {p:g})",
        build=build,
        seeds=3,
        partial=p,
        step_size_of="rmsnorm",
    )


CONDITIONS = [
    *(_moved(kind, moved) for moved, kind in itertools.product(_MOVED, _KINDS)),
    *map(_partial, (0.001, 0.01, 0.125, 0.5)),
]
