"""The paper's Table 2, translation by RNNSearch: the kinds of normalization against each other."""

from ..row import Row

# With the options of the others its states saturate within a few hundred updates, and it learns how often words are
# and nothing else. A larger epsilon keeps Adam from moving weights as far for small gradients as for large ones.
_GENTLE = {"learning_rate": 0.01, "adam_epsilon": 0.001}

ROWS = [
    Row("baseline", "Baseline", kind="none", seeds=3, options=_GENTLE),
    Row("layernorm", "LayerNorm", kind="layernorm", seeds=3),
    Row("l2norm", "L2-Norm", kind="l2norm"),
    Row("rmsnorm", "RMSNorm", kind="rmsnorm", seeds=3),
    Row("prmsnorm", "pRMSNorm", kind="prmsnorm"),
]
