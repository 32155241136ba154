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
    """A row of Table 2 or 4: TensorFlow, Nematus in Table 2, on a TITAN X."""

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
