"""The paper's Figure 3: pRMSNorm by p.

The points 6.25% and 100% are pRMSNorm and RMSNorm of Table 2.
"""

from rmsnorm_tf import RMSNormalization

from ..condition import Condition


def _row(p: float) -> Condition:
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


CONDITIONS = [_row(p) for p in (0.001, 0.01, 0.125, 0.5)]
