"""Makes every run, one after the other, and shows how far they are."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from .baseline import environment
from .corpus import Corpus
from .errors import UserError
from .plan import Run
from .runs import Place, is_done, make

_SECONDS = 2  # between two looks at how far a run is


def train_all(runs: Sequence[Run], corpus: Corpus, place: Place) -> None:
    """Makes every run that is not done.

    Raises:
        UserError: One failed, or was made with other options.
    """
    each = corpus.options["finish_after"]
    made = {run: each if is_done(run, corpus, place) else _updates(run, place) for run in runs}
    with tqdm(total=len(runs) * each, initial=sum(made.values()), unit=" updates", smoothing=0) as bar:
        for number, run in enumerate(runs, 1):
            if is_done(run, corpus, place):
                continue
            bar.set_description(f"training {number} of {len(runs)}, {run.name}")

            def show(run: Run = run) -> None:
                bar.update(_updates(run, place) - made[run])
                made[run] = _updates(run, place)

            make(run, corpus, place, lambda *arguments, show=show: _execute(place.baseline, show, *arguments))
            bar.update(each - made[run])  # one that stopped early


def _execute(folder: Path, show, output: Path, *arguments: str) -> None:
    """Runs a module in a folder, appends what it prints to a file, and shows how far it is.

    Raises:
        UserError: It failed.
    """
    with output.open("a") as file:
        command = [sys.executable, "-m", *arguments]
        process = subprocess.Popen(
            command, cwd=folder, env=environment(folder.parent / "compiled"), stdout=file, stderr=file
        )
        try:
            while process.poll() is None:
                try:
                    process.wait(_SECONDS)
                except subprocess.TimeoutExpired:
                    show()
        finally:  # a training that is asked to end saves what it has done
            process.terminate()
            process.wait()
    if process.returncode:
        raise UserError(
            f"python -m {' '.join(arguments[:2])} ended with status {process.returncode}; {output} says why"
        )


def _updates(run: Run, place: Place) -> int:
    """Returns how many updates a run has made up to its last validation."""
    try:
        return json.loads((place.model(run) / "progress.json").read_text(encoding="utf-8"))["update"]
    except FileNotFoundError:
        return 0
