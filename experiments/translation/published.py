"""Published results of Zhang & Sennrich (2019), arXiv:1910.07467, for translation."""

from typing import NamedTuple


class Published(NamedTuple):
    """A condition of Table 2 (Nematus) or 4, both TensorFlow."""

    bleu: tuple[float, float]  # on newstest2014 and newstest2017
    seconds: float  # per 1,000 updates


# Table 2, by condition.
TABLE2: dict[str, Published] = {
    "baseline": Published((21.7, 23.4), 399),
    "layernorm": Published((22.6, 23.6), 665),
    "l2norm": Published((20.7, 22.0), 482),
    "rmsnorm": Published((22.4, 23.7), 501),
    "prmsnorm": Published((22.6, 23.1), 493),
}

# Table 4, by condition. The condition without a norm fails to train. The paper has no norms before
# the residual sums.
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

# Figures 1 and 4 have no numbers. These are read from the authors' drawings, `rnn_layernorm.svg`
# and `ininmt.svg` of github.com/bzhangGo/rmsnorm.

LOSS = {
    "baseline": (9.28, 5.97),
    "layernorm": (9.18, 4.27),
}  # Figure 1: training loss at first and after 9,900 updates
MINUTES = {"baseline": 111.8, "layernorm": 157.0}  # for 9,900 updates
# Figure 4: the best validation BLEU with initial weights centred at 0.2, of the first 30
# validations, 30,000 updates each. LayerNorm's curve has no more, and RMSNorm's goes on beyond the
# axis.
CENTRED = {"LayerNorm": 3.84, "RMSNorm": 15.98}
