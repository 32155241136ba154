"""The paper's Table 2: each kind of normalization.

A file added here is trained and reported with the rest.
"""

from ..condition import Condition

CONDITIONS = [
    Condition("baseline", "Baseline", kind="none", seeds=5),
    Condition("layernorm", "LayerNorm", kind="layernorm", seeds=5),
    Condition("l2norm", "L2-Norm", kind="l2norm", seeds=5),
    Condition("rmsnorm", "RMSNorm", kind="rmsnorm", seeds=5),
    Condition("prmsnorm", "pRMSNorm", kind="prmsnorm", seeds=3),
]
