"""Re-scaling invariance before training, at the epsilon and the scale of the model."""

import itertools
from collections.abc import Mapping
from typing import Any

from ...reporting.section import Claim, Section

NEGLIGIBLE = 0.01  # a norm counts as invariant if its output changes by at most this share
_KINDS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}

Norms = Mapping[str, Mapping[str, float]]  # the measurements of every norm by its path


def section(measured: Mapping[str, Any] | None) -> Section | None:
    """Returns the section of the norms of untrained models, which were measured once for
    `multi30k`, or `None`."""
    if not measured:
        return None
    sizes = {
        f"{each['embedding_size']}/{each['state_size']}": each["norms"]
        for each in measured["sizes"]
    }
    epsilon = measured["epsilon"]
    heads = ["mean square / epsilon", *(f"change, {name}" for name in _KINDS.values())]
    return Section(
        name="initial_scale",
        title="Re-scaling before training, at the model's own epsilon",
        text=[
            f"The norms' epsilon of {epsilon:.0e} is added to the mean square of their input, so their outputs are "
            "invariant to a re-scaling of the weights only if the mean square is much larger. Measured in RNNs with "
            f"initial weights and random words, commit {measured['commit']}: the mean square of the input of every "
            "norm, and how much its output changes at most, relative to the largest output, if the weights in front of "
            "it are doubled. Sizes are those of embedding and state; the last is the paper's. As in Nematus, a square "
            "matrix is orthogonal at the start, and any other has a standard deviation of 0.01. If embedding and state "
            "have the same size, more matrices are square.",
            f"A norm counts as invariant if its output changes by at most {NEGLIGIBLE:.0%}. All this holds before "
            "training. How the mean squares grow during training was not measured.",
        ],
        columns=["norm", *(f"{size}: {head}" for size, head in itertools.product(sizes, heads))],
        rows=[_cells(path, sizes, epsilon) for path in next(iter(sizes.values()))["rmsnorm"]],
        data=measured,
        claims=[_claim({size: norms["rmsnorm"] for size, norms in sizes.items()}, epsilon)],
    )


def _claim(sizes: Mapping[str, Norms], epsilon: float) -> Claim:
    largest = {}
    for size, norms in sizes.items():
        largest[size] = max(each["change"] for each in norms.values())
    told = " and ".join(f"{change:.0%} at {size}" for size, change in largest.items())
    return Claim(
        "Table 1: RMSNorm is invariant to re-scaled weights; here in models before training, with their epsilon",
        "invariant, without an epsilon",
        f"doubled weights change its output by up to {told}, epsilon {epsilon:.0e}",
        "borne out"
        if max(largest.values()) <= NEGLIGIBLE
        else "only where the mean square is far above epsilon",
    )


def _cells(path: str, sizes: Mapping[str, Mapping[str, Norms]], epsilon: float) -> list[str]:
    cells = [f"`{path}`"]
    for norms in sizes.values():
        cells.append(f"{norms['rmsnorm'][path]['mean_square'] / epsilon:.2g}")
        cells += [f"{norms[kind][path]['change']:.0%}" for kind in _KINDS]
    return cells
