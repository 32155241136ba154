"""The kinds of normalization of both papers, with one epsilon. Their options are arguments of `RMSNormLSTM`."""

from ...trials.trial import TrialRow

EPSILON = 1e-5
_NORMS = {
    "layernorm": ("LayerNorm", {"normalization": "layer"}),
    "rmsnorm": ("RMSNorm", {"normalization": "rms"}),
    "prmsnorm": ("pRMSNorm, p = 6.25%", {"normalization": "rms", "partial": 0.0625}),
}

ROWS = [
    TrialRow("none", "no norm", None, paper=True, options={"normalization": None}),
    *(
        TrialRow(name, label, None, paper=True, options={**options, "epsilon": EPSILON})
        for name, (label, options) in _NORMS.items()
    ),
]
