"""The kinds of normalization of both papers inside `RMSNormGRU` and `RMSNormLSTM`."""

from .trial import TrialRow

EPSILON = 1e-5  # of all kinds

CELL_ROWS = (
    TrialRow("none", "no norm", None, paper=True, options={"normalization": None}),
    TrialRow("layernorm", "LayerNorm", None, paper=True, options={"normalization": "layer", "epsilon": EPSILON}),
    TrialRow("rmsnorm", "RMSNorm", None, paper=True, options={"normalization": "rms", "epsilon": EPSILON}),
    TrialRow(
        "prmsnorm",
        "pRMSNorm, p = 6.25%",
        None,
        paper=True,
        options={"normalization": "rms", "partial": 0.0625, "epsilon": EPSILON},
    ),
)
