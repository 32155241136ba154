"""The grid of learning rates: every row is trained with each on a seed that is not reported, and takes the best."""

from collections.abc import Iterable, Sequence

from ..trials.trial import GRID_SEED
from .results import Result, by_row
from .row import Row, Run


def grid_runs(rows: Iterable[Row], step_sizes: Sequence[float]) -> list[Run]:
    """Returns the runs with every learning rate, of the rows that choose one."""
    return [Run(row, GRID_SEED, each) for each in step_sizes for row in rows if row.chooses]


def choose(rows: Iterable[Row], grid: Iterable[Result], step_sizes: Sequence[float]) -> dict[Row, float | None]:
    """Returns the learning rate of each row: that with the best validation, or `None` for that of its options.

    A row is left out as long as the grid that chooses its learning rate is not wholly done.

    Args:
        rows: All rows.
        grid: The results of `grid_runs` that are done.
        step_sizes: The grid; empty if the corpus has none.
    """
    if not step_sizes:
        return dict.fromkeys(rows)
    whole = {row.name: done for row, done in by_row(grid).items() if len(done) == len(step_sizes)}
    best = {name: max(done, key=lambda each: each.dev) for name, done in whole.items()}
    found: dict[Row, float | None] = {}
    for row in rows:
        if "learning_rate" in row.options:
            found[row] = None
        elif chosen := best.get(row.step_size_of or row.name):
            found[row] = chosen.log["options"]["learning_rate"]
    return found
