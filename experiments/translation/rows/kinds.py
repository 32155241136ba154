"""The paper's Table 2, translation with RNNSearch: one row for each kind of normalization."""

from ..row import Row

ROWS = [
    Row("baseline", "Baseline", kind="none", seeds=5),
    Row("layernorm", "LayerNorm", kind="layernorm", seeds=11),
    Row("l2norm", "L2-Norm", kind="l2norm", seeds=3),
    Row("rmsnorm", "RMSNorm", kind="rmsnorm", seeds=11),
    Row("prmsnorm", "pRMSNorm", kind="prmsnorm", seeds=3),
]
