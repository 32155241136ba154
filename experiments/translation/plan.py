"""The trainings: every row of `rows/` with every seed, and the grid of learning rates from which rows take the best."""

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from nmt.errors import UserError

from ..trials.trial import GRID_SEED, rows_of
from . import rows
from .corpus import Corpus
from .row import Row, Run


def read_rows() -> list[Row]:
    """Returns the rows of every file in `rows/`, the paper's first.

    Raises: UserError: Two rows have the same name, or a row that builds its norm has the name of
        another row's kind.
    """
    found = rows_of(rows)
    taken = {row.name for row in found if row.build} & {row.kind for row in found}
    if taken:
        raise UserError(
            f"{', '.join(sorted(taken))} is the kind of another row; give the new row another name"
        )
    return found


def seed_runs(
    step_sizes: Mapping[Row, float | None], most_seeds: int, only: Collection[int] = ()
) -> Iterator[Run]:
    """Yields all rows with the lowest seed, then those that have the second, and so on.

    Args:
        step_sizes: The chosen learning rate of each row, or `None` for that of its options.
        most_seeds: The largest number of seeds of a row.
        only: The seeds to yield; by default all.
    """
    seeds = {
        row: range(row.first_seed, row.first_seed + min(row.seeds, most_seeds))
        for row in step_sizes
    }
    for seed in sorted(set().union(*seeds.values())):
        if seed in only or not only:
            yield from (
                Run(row, seed, step_size)
                for row, step_size in step_sizes.items()
                if seed in seeds[row]
            )


def corpus_runs(corpus: Corpus) -> list[Run]:
    """Returns the runs of a corpus whose rows all have the learning rate of its options."""
    return list(seed_runs(dict.fromkeys(corpus.adapt(read_rows())), corpus.seeds))


def grid_runs(rows: Iterable[Row], step_sizes: Sequence[float]) -> list[Run]:
    """Returns the runs with every learning rate, of the rows that choose one."""
    choosing = [row for row in rows if row.chooses]
    return [Run(row, GRID_SEED, each) for each, row in itertools.product(step_sizes, choosing)]
