"""Makes all runs, one after the other, with a progress bar."""

import json
from collections.abc import Sequence

from tqdm import tqdm

from nmt.errors import UserError

from .corpus import Corpus
from .place import Place
from .row import Run
from .runs import is_done, make


def train_all(runs: Sequence[Run], corpus: Corpus, place: Place) -> dict[str, str]:
    """Makes every run that is not done; a run that fails does not stop the others.

    Returns:
        The reason of each failure, by the name of the run.

    Raises:
        UserError: The log of a run has other options.
    """
    failed: dict[str, str] = {}
    each = corpus.options["finish_after"]
    made = {run: each if is_done(run, corpus, place) else _updates(run, place) for run in runs}
    with tqdm(total=len(runs) * each, initial=sum(made.values()), unit=" updates", smoothing=0) as bar:

        def show(run: Run, updates: int) -> None:
            bar.update(updates - made[run])
            made[run] = updates

        for number, run in enumerate(runs, 1):
            if not is_done(run, corpus, place):
                bar.set_description(f"training {number} of {len(runs)}, {run.name}")
                try:
                    make(run, corpus, place, lambda run=run: show(run, _updates(run, place)))
                    show(run, each)  # it may have stopped early
                except UserError as error:
                    failed[run.name] = str(error)
    return failed


def _updates(run: Run, place: Place) -> int:
    """Returns the number of updates of a run at its last validation."""
    try:
        return json.loads((place.model(run) / "progress.json").read_text(encoding="utf-8"))["update"]
    except FileNotFoundError:
        return 0
