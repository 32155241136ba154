"""The paper's Table 2: each kind of normalization.

A file added here is trained and reported with the rest.
"""

from ..row import Row

ROWS = [
    Row("baseline", "Baseline", kind="none", seeds=5),
    Row("layernorm", "LayerNorm", kind="layernorm", seeds=5),
    Row("l2norm", "L2-Norm", kind="l2norm", seeds=5),
    Row("rmsnorm", "RMSNorm", kind="rmsnorm", seeds=5),
    Row("prmsnorm", "pRMSNorm", kind="prmsnorm", seeds=3),
]
