"""A plot of paired differences: a row for each pair, with its seeds, their mean and its interval."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from ...reporting.intervals import t_interval
from ...reporting.styles import Style
from .paired import MARGIN

ABOVE = 0.22  # where the seeds are, above their mean


def draw_forest(axes: Axes, rows: Mapping[str, tuple[Sequence[float], Style]], test: str) -> None:
    """Draws differences in BLEU on a test set, with the margin of equality. The first row is at the top.

    Args:
        axes: Where to draw.
        rows: The difference of each seed and the style of a row, by its label.
        test: Name of the test set.
    """
    axes.axvspan(-MARGIN, MARGIN, color="#E4E4E4", zorder=0, label=f"within {MARGIN} BLEU")
    axes.axvline(0, color="black", linewidth=0.6)
    for at, (gains, style) in enumerate(rows.values()):
        axes.plot(gains, [at - ABOVE] * len(gains), "|", color=style.color, markersize=9)
        if len(gains) > 1:
            middle, low, high = t_interval(gains)
            errors = [[middle - low], [high - middle]]
            axes.errorbar(middle, at, xerr=errors, fmt=style.marker, color=style.color, capsize=4)
    axes.plot([], [], "|", color="black", markersize=9, label="each seed")
    axes.errorbar([], [], xerr=[], fmt="o", color="black", capsize=4, label="mean with 95% interval")
    axes.set(xlabel=f"difference in BLEU on {test}", ylim=(len(rows) - 0.5, -0.5))
    axes.set_yticks(range(len(rows)), list(rows))
