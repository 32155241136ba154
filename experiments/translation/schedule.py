"""Lists the runs: every condition with every seed, and the grid of learning rates."""

import importlib
import itertools
import pkgutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from nmt.errors import UserError

from ..runs.run import GRID_SEED
from . import conditions
from .condition import Condition, Run
from .corpus import Corpus


def read_conditions() -> list[Condition]:
    """Returns the conditions of every file in `conditions/`, the paper's first.

    Raises:
        UserError: Two conditions have the same name, or a condition that builds its norm has the
            name of another condition's kind.
    """
    found = list(conditions.CONDITIONS)
    for file in sorted(module.name for module in pkgutil.iter_modules(conditions.__path__)):
        found += importlib.import_module(f"{conditions.__name__}.{file}").CONDITIONS
    names = [condition.name for condition in found]
    kinds = {condition.kind for condition in found}
    taken = {each.name for each in found if names.count(each.name) > 1}
    taken |= {each.name for each in found if each.build and each.name in kinds}
    if taken:
        raise UserError(
            f"{', '.join(sorted(taken))}: another condition has this name or kind; choose another"
        )
    return found


def seed_runs(
    step_sizes: Mapping[Condition, float | None], most_seeds: int, only: Collection[int] = ()
) -> Iterator[Run]:
    """Yields all conditions with the lowest seed, then those that have the second, and so on.

    Args:
        step_sizes: The chosen learning rate of each condition, or `None` for that of its options.
        most_seeds: The largest number of seeds of a condition.
        only: The seeds to yield; by default all.
    """
    seeds = {
        condition: range(
            condition.first_seed, condition.first_seed + min(condition.seeds, most_seeds)
        )
        for condition in step_sizes
    }
    for seed in sorted(set().union(*seeds.values())):
        if seed in only or not only:
            yield from (
                Run(condition, seed, step_size)
                for condition, step_size in step_sizes.items()
                if seed in seeds[condition]
            )


def corpus_runs(corpus: Corpus) -> list[Run]:
    """Returns the runs of a corpus whose conditions all have the learning rate of its options."""
    return list(seed_runs(dict.fromkeys(corpus.select(read_conditions())), corpus.seeds))


def grid_runs(conditions: Iterable[Condition], step_sizes: Sequence[float]) -> list[Run]:
    """Returns the runs with every learning rate, of the conditions that choose one."""
    choosing = [condition for condition in conditions if condition.chooses]
    return [
        Run(condition, GRID_SEED, each)
        for each, condition in itertools.product(step_sizes, choosing)
    ]
