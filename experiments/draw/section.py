"""What the DRAW report says of learning."""

from ..trials.learning import Column, Comparison, Curve, Learning, faster, last, last_loss, mean_of

_TEXT = (
    "DRAW without attention: two LSTMs read and draw an image in steps. The norm stands inside both, on the cell state "
    "alone: h = o * tanh(N(c)). The data are MNIST, binarized once at random with a fixed seed, so the values do not "
    "compare with those of the usual binarized MNIST. The bound is the cross entropy of the pixels plus the divergence "
    "of all steps, in nats; lower is better. Its mean over the whole training tells how fast it falls. Here, LSTMs "
    "have 128 units and draw in 8 steps; in the paper they have 256 units and draw in 64. Values are means over the "
    "seeds, with the standard deviation (sd)."
)
_PUBLISHED = {"none": "82.36", "layernorm": "82.09"}
_COLUMNS = (
    Column("mean validation bound", mean_of("bound"), 2),
    Column("last training loss", last_loss, 2),
    Column("last validation bound", last("bound"), 2),
    Column("last test bound", last("test_bound"), 2),
)
_CURVES = (
    Curve("train", "loss", "training bound, nats", scale="linear"),
    Curve("validations", "bound", "validation bound, nats", scale="linear"),
)
_COMPARISON = Comparison(
    "mean validation bound",
    mean_of("bound"),
    unit="%",
    hypotheses=faster("Ba et al., section 6.4: a curve, almost twice as fast"),
)
LEARNING = Learning("The bound (Ba et al. 2016, section 6.4)", _TEXT, _COLUMNS, _CURVES, [_COMPARISON], _PUBLISHED)
