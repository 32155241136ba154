"""Table 1 of Zhang & Sennrich (2019), arXiv:1910.07467: the published invariances."""

# After Ba et al. (2016), arXiv:1607.06450, table 1: whether a transformation leaves the output unchanged.
_TRANSFORMATIONS = (
    "weight matrix re-scaling",
    "weight matrix re-centring",
    "weight vector re-scaling",
    "dataset re-scaling",
    "dataset re-centring",
    "single case re-scaling",
)
INVARIANCES: dict[str, dict[str, bool]] = {
    norm: dict(zip(_TRANSFORMATIONS, invariant, strict=True))
    for norm, invariant in {
        "BatchNorm": (True, False, True, True, True, False),
        "WeightNorm": (True, False, True, False, False, False),
        "LayerNorm": (True, True, False, True, False, True),
        "RMSNorm": (True, False, False, True, False, True),
        "pRMSNorm": (True, False, False, True, False, True),
    }.items()
}
