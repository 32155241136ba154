"""The paper's Figure 4: initial weights around 0.2.

All, the embeddings, or the matrices before a norm.
"""

import itertools

from ..condition import Condition

_KINDS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}
_MOVED = {"all": "", "embeddings": " of embeddings", "matrices": " of other matrices"}
_CENTRE = 0.2


def _row(kind: str, moved: str) -> Condition:
    name = f"{kind}-centre" + ("" if moved == "all" else f"-{moved}")
    label = f"{_KINDS[kind]} (centre {_CENTRE:g}{_MOVED[moved]})"
    seeds = 5 if moved == "all" else 3  # the paper's conditions
    return Condition(
        name, label, kind=kind, seeds=seeds, centre=_CENTRE, moved=moved, step_size_of=kind
    )


CONDITIONS = [_row(kind, moved) for moved, kind in itertools.product(_MOVED, _KINDS)]
