"""What the report on handwriting says of learning, and the lines that the networks write."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ..reporting.section import Section
from ..trials.learning import FASTER, Column, Comparison, Curve, Expectation, Learning, last, mean_of
from ..trials.sections import Logs, samples_sections

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


def drawn_sections(logs: Logs) -> list[Section]:
    """Returns the section with lines that the networks write, if there are any."""
    text = "New lines, drawn point by point from the same random numbers for every kind; the first seed."
    return samples_sections(logs, "What the networks write", text, "lines", _plot)


def _plot(figure: Figure, written: Mapping[str, list]) -> None:
    count = max(map(len, written.values()))
    figure.set(size_inches=(9.5, 0.9 * len(written) + 0.6), layout_engine="constrained")
    for row, (label, lines) in zip(figure.subplots(len(written), count, squeeze=False), written.items(), strict=True):
        for axes, line in zip(row, lines, strict=True):
            for stroke in strokes(np.array(line)):
                axes.plot(*stroke.T, color="black", linewidth=0.8)
            axes.set(aspect="equal", xticks=[], yticks=[])
            axes.invert_yaxis()
            axes.axis("off")
        row[0].set_title(label, fontsize=8, loc="left")


def strokes(line: np.ndarray) -> list[np.ndarray]:
    """Returns the positions of each stroke of a line, `[points, 2]`; a stroke ends where the pen goes up."""
    positions = np.cumsum(line[:, :2], 0)
    ends = np.flatnonzero(line[:, 2] > 0) + 1
    return [part for part in np.split(positions, ends) if len(part)]
