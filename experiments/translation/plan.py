"""The trainings: every row of `rows/` with every seed."""

from collections.abc import Iterable, Iterator

from nmt.errors import UserError

from ..trials.trial import read_rows as read_package
from . import rows
from .row import Row, Run


def read_rows() -> list[Row]:
    """Returns the rows of every file in `rows/`, those of `kinds.py` first.

    Raises:
        UserError: Two rows have the same name, or a row that builds its norm is named like a kind of another row.
    """
    found = read_package(rows)
    if taken := {row.name for row in found if row.build} & {row.kind for row in found}:
        raise UserError(f"{', '.join(sorted(taken))} is a kind that other rows have; give the new row another name")
    return found


def all_runs(found: Iterable[Row], most_seeds: int) -> Iterator[Run]:
    """Yields all rows with the first seed, then with the second those that have one, up to the most seeds allowed."""
    found = list(found)
    for seed in range(1, most_seeds + 1):
        yield from (Run(row, seed) for row in found if row.seeds >= seed)
