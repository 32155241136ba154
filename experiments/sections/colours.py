"""The colour and the label of each kind of normalization, the same in every plot."""

# Of the palette by Okabe and Ito, which the colour-blind can tell apart.
COLOURS = {
    "none": "#7F7F7F",
    "layernorm": "#0072B2",
    "rmsnorm": "#D55E00",
    "prmsnorm": "#009E73",
    "l2norm": "#CC79A7",
}

LABELS = {
    "none": "Baseline",
    "layernorm": "LayerNorm",
    "rmsnorm": "RMSNorm",
    "prmsnorm": "pRMSNorm",
    "l2norm": "L2-Norm",
}
