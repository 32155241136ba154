"""Makes all runs, one after the other, with a progress bar."""

from collections.abc import Sequence

from tqdm import tqdm

from nmt.errors import UserError

from .corpus import Corpus
from .place import Place
from .row import Run
from .runs import is_done, last_update, make, updates_of


def train_all(runs: Sequence[Run], corpus: Corpus, place: Place) -> dict[str, str]:
    """Makes every run that is not done; a run that fails does not stop the others.

    Returns:
        The reason of each failure, by the name of the run.

    Raises:
        UserError: The log of a run has other options.
    """
    failed: dict[str, str] = {}
    last = {run: last_update(run, corpus) for run in runs}
    made = {run: last[run] if is_done(run, corpus, place) else updates_of(run, place) for run in runs}
    with tqdm(total=sum(last.values()), initial=sum(made.values()), unit=" updates", smoothing=0) as bar:

        def show(run: Run, updates: int) -> None:
            bar.update(updates - made[run])
            made[run] = updates

        for number, run in enumerate(runs, 1):
            if not is_done(run, corpus, place):
                bar.set_description(f"training {number} of {len(runs)}, {run.name}")
                try:
                    make(run, corpus, place, lambda run=run: show(run, updates_of(run, place)))
                    show(run, last[run])  # it may have stopped early
                except UserError as error:
                    failed[run.name] = str(error)
    return failed
