"""The paper's Figure 4: initial weights around another centre; all, the embeddings, or the matrices before a norm."""

from ..row import Row

_KINDS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}
_MOVED = {"all": "", "embeddings": " of embeddings", "matrices": " of other matrices"}
PAPERS = 0.2  # the centre of the paper


def _row(kind: str, centre: float, moved: str) -> Row:
    suffix = ("" if centre == PAPERS else f"-{centre:g}") + ("" if moved == "all" else f"-{moved}")
    label = f"{_KINDS[kind]} (centre {centre:g}{_MOVED[moved]})"
    seeds = 5 if (centre, moved) == (PAPERS, "all") else 3  # the paper's rows
    return Row(f"{kind}-centre{suffix}", label, kind=kind, seeds=seeds, centre=centre, moved=moved, step_size_of=kind)


ROWS = [_row(kind, centre, moved) for centre in (PAPERS, 0.02) for moved in _MOVED for kind in _KINDS]
