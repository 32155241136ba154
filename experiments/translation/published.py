"""Published results of Zhang & Sennrich (2019), arXiv:1910.07467, for translation."""

from typing import NamedTuple

# The paper's names of its rows. Ours have more in their labels if they have their own recipe.
LABELS = {
    "baseline": "Baseline",
    "layernorm": "LayerNorm",
    "l2norm": "L2-Norm",
    "rmsnorm": "RMSNorm",
    "prmsnorm": "pRMSNorm",
}


class Published(NamedTuple):
    """A row of Table 2 (Nematus) or 4, both TensorFlow."""

    bleu: tuple[float, float]  # on newstest2014 and newstest2017
    seconds: float  # per 1,000 updates


# Table 2, by row.
TABLE2: dict[str, Published] = {
    "baseline": Published((21.7, 23.4), 399),
    "layernorm": Published((22.6, 23.6), 665),
    "l2norm": Published((20.7, 22.0), 482),
    "rmsnorm": Published((22.4, 23.7), 501),
    "prmsnorm": Published((22.6, 23.1), 493),
}

# Table 4, by row. The row without a norm fails to train. The paper has no norms before the residual sums.
TABLE4: dict[str, Published] = {
    "post-layernorm": Published((26.6, 27.7), 248),
    "post-rmsnorm": Published((26.8, 27.7), 231),
    "post-prmsnorm": Published((26.5, 27.8), 225),
}
FAILS = "post-none"

RESULTS = TABLE2 | TABLE4
TABLES = {"rnn": "Table 2", "transformer": "Table 4"}  # by architecture
MACHINES = {  # models and processors of these tables
    "rnn": "a TITAN X, with embedding 512 and state 1024",
    "transformer": "Transformer-base (512 units, 6 + 6 layers) on a V100",
}

# The curves are read from the authors' vector drawings, `rnn_layernorm.svg` (Figure 1) and `ininmt.svg` (Figure 4) of
# github.com/bzhangGo/rmsnorm.

# Figure 1: training loss every 100 updates, by row of Table 2. The figure shows no other rows.
_LOSS = {
    "baseline": """
        9.28 8.21 8.22 8.21 8.21 8.19 8.21 8.20 8.15 8.10 7.99 7.91 7.82 7.73 7.68 7.64 7.58 7.54 7.47 7.47 7.44
        7.39 7.34 7.26 7.26 7.21 7.14 7.09 7.06 7.07 7.01 6.98 6.95 6.89 6.89 6.89 6.86 6.80 6.73 6.78 6.75 6.68
        6.69 6.65 6.67 6.68 6.63 6.61 6.54 6.56 6.55 6.51 6.53 6.46 6.48 6.48 6.43 6.44 6.38 6.39 6.41 6.40 6.35
        6.37 6.34 6.35 6.30 6.32 6.29 6.31 6.31 6.28 6.26 6.26 6.27 6.24 6.22 6.23 6.15 6.22 6.17 6.19 6.17 6.11
        6.13 6.16 6.07 6.09 6.09 6.13 6.09 6.08 6.03 6.03 6.04 6.05 6.03 6.04 5.99 5.97
    """,
    "layernorm": """
        9.18 7.93 7.63 7.43 7.25 7.12 6.99 6.90 6.74 6.68 6.60 6.52 6.44 6.38 6.28 6.24 6.18 6.10 6.03 5.92 5.95
        5.87 5.83 5.73 5.70 5.68 5.58 5.58 5.55 5.45 5.48 5.39 5.37 5.34 5.29 5.30 5.27 5.18 5.16 5.12 5.13 5.11
        5.08 5.04 5.03 5.00 5.01 4.93 4.94 4.91 4.90 4.91 4.88 4.85 4.77 4.75 4.82 4.78 4.71 4.69 4.75 4.69 4.67
        4.63 4.64 4.59 4.63 4.62 4.59 4.54 4.62 4.54 4.52 4.54 4.49 4.49 4.51 4.48 4.47 4.43 4.44 4.42 4.44 4.40
        4.37 4.36 4.40 4.36 4.34 4.35 4.32 4.38 4.34 4.32 4.28 4.29 4.29 4.30 4.27 4.27
    """,
}
LOSS: dict[str, dict[int, float]] = {
    row: {100 * number: float(loss) for number, loss in enumerate(found.split())} for row, found in _LOSS.items()
}
MINUTES = {"baseline": 111.8, "layernorm": 157.0}  # for 9,900 updates

# Figure 4: validation BLEU every 30,000 updates with initial weights centred at 0.2, by kind: the first 30 points of
# each curve. LayerNorm's has no more, and RMSNorm's goes on beyond the axis.
_CENTRED = {
    "layernorm": """
        1.37 1.18 1.49 2.00 1.31 1.68 1.47 1.87 2.19 1.77 2.57 1.89 2.20 1.93 2.29 2.00 2.83 2.05 2.24 2.32 2.48
        2.38 2.92 2.96 2.52 2.90 2.60 3.52 3.57 3.84
    """,
    "rmsnorm": """
        3.03 4.53 4.32 5.24 4.81 6.25 7.36 8.38 8.27 8.55 9.00 9.85 9.63 11.37 11.16 12.80 12.71 12.97 13.11
        13.19 13.45 13.86 13.44 13.33 14.65 14.88 15.72 15.09 15.98 15.71
    """,
}
CENTRED: dict[str, list[float]] = {kind: list(map(float, found.split())) for kind, found in _CENTRED.items()}
