"""Limits an axis to the values near a centre, and writes the values beyond as text."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

_EDGE = 0.5  # free space at both ends


def show_near(axes: Axes, rows: Mapping[int, Sequence[float]], centre: float, distance: float) -> None:
    """Limits the x axis to the centre and the values within a distance of it.

    Args:
        axes: Has a row at each y position of `rows`.
        rows: The x values of each row by its y position.
        centre: The centre.
        distance: Values farther from the centre are written as text at the edge of their row.
    """
    near = [centre, *(each for row in rows.values() for each in row if abs(each - centre) <= distance)]
    axes.set_xlim(min(near) - _EDGE, max(near) + _EDGE)
    look = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 9}
    for at, row in rows.items():
        if below := [each for each in row if each < centre - distance]:
            axes.text(0.02, at, f"◄ {_range(below)}", ha="left", **look)
        if above := [each for each in row if each > centre + distance]:
            axes.text(0.98, at, f"{_range(above)} ►", ha="right", **look)


def _range(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{each:.1f}" for each in (min(values), max(values))))
