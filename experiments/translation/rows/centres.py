"""The paper's Figure 4: matrices initialised around 0.2 instead of 0."""

from ..row import Row

ROWS = [
    Row(f"{kind}-centre", f"{label}, centre 0.2", kind=kind, centre=0.2)
    for kind, label in (("layernorm", "LayerNorm"), ("rmsnorm", "RMSNorm"))
]
