"""The kinds of normalization of both papers, with one epsilon. Their options are arguments of `RMSNormGRU`."""

from ...trials.trial import TrialRow

EPSILON = 1e-5

ROWS = [
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
]
