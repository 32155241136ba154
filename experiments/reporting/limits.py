"""Limits an axis to the values near a centre, and writes the range of rows with values beyond as text."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from matplotlib.axes import Axes

_EDGE = 0.5  # free space at both ends
_BELOW = 0.37  # of a row: the text of a row with values on the axis is below them


def show_near(
    axes: Axes,
    rows: Mapping[int, Sequence[float]],
    centre: float,
    distance: float,
    told: Mapping[int, str] = MappingProxyType({}),
    others: Sequence[float] = (),
) -> None:
    """Limits the x axis to the centre and the values within a distance of it.

    Args:
        axes: Has a row at each y position of `rows`.
        rows: The x values of each row by its y position.
        centre: The centre.
        distance: A row with values farther from the centre has its whole range as text at that edge.
        told: Another text for some rows.
        others: Other values to show if they are near.
    """
    values = [*others, *(each for row in rows.values() for each in row)]
    near = [centre, *(each for each in values if abs(each - centre) <= distance)]
    axes.set_xlim(min(near) - _EDGE, max(near) + _EDGE)
    look = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 9}
    for at, row in rows.items():
        text = told.get(at) or _range(row)
        y = at + _BELOW if any(abs(each - centre) <= distance for each in row) else at
        if min(row) < centre - distance:
            axes.text(0.02, y, f"◄ {text}", ha="left", **look)
        if max(row) > centre + distance:
            axes.text(0.98, y, f"{text} ►", ha="right", **look)


def _range(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{each:.1f}" for each in (min(values), max(values))))
