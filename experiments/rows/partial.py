"""The paper's Figure 3: pRMSNorm over p. Of its other points, 6.25% is pRMSNorm and 100% is RMSNorm of Table 2."""

from functools import partial as bind

from rmsnorm_tf import RMSNormalization

from ..row import Row


def _build(partial: float, name: str) -> RMSNormalization:
    return RMSNormalization(partial=partial, epsilon=1e-5, name=name)


ROWS = [
    Row(f"partial-{p:g}", f"pRMSNorm, p = {p:g}", build=bind(_build, p), partial=p, section="partial")
    for p in (0.001, 0.01, 0.125, 0.5)
]
