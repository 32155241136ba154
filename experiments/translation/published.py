"""Published figures: Zhang & Sennrich (2019), arXiv:1910.07467, with the number of the table."""

from typing import NamedTuple

# Table 5, of the decoder's GRU on newstest2013, by the name of the row.
_POSITIONS = ("1", "2", "3", "4", "all")
ACTIVATIONS: dict[str, dict[str, tuple]] = {
    name: {"positions": _POSITIONS, "mean": mean, "std": std}
    for name, (mean, std) in {
        "baseline": ((-2.60, -1.19, -1.43, -1.53, -1.60), (7.35, 2.33, 2.61, 2.73, 3.04)),
        "layernorm": ((-0.43, -0.48, -0.50, -0.50, -0.51), (1.19, 1.51, 1.51, 1.51, 1.51)),
        "rmsnorm": ((-0.40, -0.60, -0.69, -0.74, -0.73), (1.27, 1.51, 1.50, 1.49, 1.50)),
    }.items()
}


class Published(NamedTuple):
    """A row of Table 2, of TensorFlow Nematus on a TITAN X."""

    bleu: tuple[float, float]  # on newstest2014 and newstest2017
    seconds: float  # per 1,000 updates
    deviation: float  # their standard deviation over three runs
    saving: float | None = None  # of LayerNorm's time, where it is given


# By the name of the row.
TABLE2: dict[str, Published] = {
    "baseline": Published((21.7, 23.4), 399, 3.40),
    "layernorm": Published((22.6, 23.6), 665, 32.5),
    "l2norm": Published((20.7, 22.0), 482, 19.7),
    "rmsnorm": Published((22.4, 23.7), 501, 11.8, 0.247),
    "prmsnorm": Published((22.6, 23.1), 493, 10.7, 0.259),
}
