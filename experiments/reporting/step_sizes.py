"""The section of a grid of learning rates, from which each row takes its best."""

from collections.abc import Mapping
from typing import Any

from .section import Section

Grid = Mapping[str, Mapping[str, Mapping[float, float]]]  # the best value by setting, row and learning rate


def step_size_section(grid: Grid, label: str, digits: int, data: Any) -> Section | None:
    """Returns the section, or `None` for an empty grid.

    Args:
        grid: The values, by the labels of settings and rows. With a single setting, its label may be empty.
        label: The values in words.
        digits: Digits after the point in the table.
        data: The values, for the JSON file.
    """
    if not grid:
        return None
    sizes = sorted({size for rows in grid.values() for found in rows.values() for size in found})
    return Section(
        name="step_sizes",
        title="Learning rates",
        text=[
            f"Best {label} by the learning rate of Adam, with a seed that is not reported elsewhere. The reported "
            "seeds of a row have its best learning rate."
        ],
        columns=["", *(f"{size:.2g}" for size in sizes)],
        rows=[
            [", ".join(filter(None, (row, setting))), *(_cell(found.get(size), digits) for size in sizes)]
            for setting, rows in grid.items()
            for row, found in rows.items()
        ],
        data=data,
    )


def _cell(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
