"""What the report on handwriting says of learning."""

from ..trials.learning import FASTER, Column, Comparison, Curve, Expectation, Learning, last, mean_of

_TEXT = (
    "Two LSTMs of 64 units, with the norm inside, read the points of a pen and predict the next as 20 mixed normal "
    "distributions. The paper has three LSTMs of 400 units, which also read the text to write, lines of up to 500 "
    "points and batches of 8. The loss is in nats a point. Offsets are divided by their standard deviation, which "
    "shifts the loss by a constant, so margins are in nats and not in percent. Its mean over the whole training "
    "tells how fast it falls. Values are means over the seeds, with the standard deviation (sd)."
)
_PAPER = "Ba et al., section 6.5"
_COLUMNS = (
    Column("mean validation loss", mean_of("nll"), 3),
    Column("last validation loss", last("nll"), 3),
    Column("last test loss", last("test_nll"), 3),
)
_CURVES = (
    Curve("train", "loss", "training loss, nats a point", scale="linear"),
    Curve("validations", "nll", "validation loss, nats a point", scale="linear"),
)
_COMPARISONS = (
    Comparison(
        "mean validation loss",
        mean_of("nll"),
        unit=" nats",
        digits=3,
        expectations=[
            Expectation(
                "layernorm",
                "none",
                "lower",
                f"LayerNorm {FASTER}",
                f"{_PAPER}: a curve",
            ),
            Expectation("rmsnorm", "none", "lower", f"RMSNorm {FASTER}", "not in the papers"),
            Expectation("rmsnorm", "layernorm", "equal", "RMSNorm learns as fast as LayerNorm", "not in the papers"),
        ],
    ),
)
LEARNING = Learning("The loss (Ba et al. 2016, section 6.5)", _TEXT, _COLUMNS, _CURVES, _COMPARISONS)
