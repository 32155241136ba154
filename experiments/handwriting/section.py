"""What the report on handwriting says of learning."""

from ..trials.learning import Column, Comparison, Curve, Learning, faster, last, mean_of

_TEXT = (
    "Two LSTMs of 64 units, with the norm inside, read the points of a pen and predict the next as 20 mixed normal "
    "distributions. The paper has three LSTMs of 400 units, which also read the text to write, lines of up to 500 "
    "points and batches of 8. The loss is in nats a point. Offsets are divided by their standard deviation, which "
    "shifts the loss by a constant, so margins are in nats and not in percent. Its mean over the whole training "
    "tells how fast it falls. Values are means over the seeds, with the standard deviation (sd)."
)
_COLUMNS = (
    Column("mean validation loss", mean_of("nll"), 3),
    Column("last validation loss", last("nll"), 3),
    Column("last test loss", last("test_nll"), 3),
)
_CURVES = (
    Curve("train", "loss", "training loss, nats a point", scale="linear"),
    Curve("validations", "nll", "validation loss, nats a point", scale="linear"),
)
_COMPARISON = Comparison(
    "mean validation loss", mean_of("nll"), unit=" nats", digits=3, hypotheses=faster("Ba et al., section 6.5: a curve")
)
LEARNING = Learning("The loss (Ba et al. 2016, section 6.5)", _TEXT, _COLUMNS, _CURVES, [_COMPARISON])
