"""Makes one run and writes its log: options, validations, and BLEU of the test sets."""

import itertools
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sacrebleu

from nmt.decoding.metrics import bleu, read_lines
from nmt.errors import UserError
from nmt.storage.files import atomic_write

from .baseline import commit_of, execute
from .corpus import Corpus
from .place import Place
from .row import Run


class Training(NamedTuple):
    """A run on a corpus, as the book of its logs knows it."""

    run: Run
    corpus: Corpus
    place: Place

    @property
    def name(self) -> str:
        """Name of its log."""
        return self.run.name

    @property
    def options(self) -> dict[str, Any]:
        """The options of the training, and what else a log must share with it."""
        row, tests = self.run.row, sorted(self.corpus.tests) if self.run.tested else []
        return {**portable(options_of(*self)), "centre": row.centre, "moved": row.moved, "tests": tests}

    def options_of(self, log: Mapping[str, Any]) -> dict[str, Any]:
        """Returns these values of a log."""
        return {**log["options"], "centre": log["centre"], "moved": log["moved"], "tests": sorted(log["tests"])}


def make_all(runs: Sequence[Run], corpus: Corpus, place: Place) -> dict[str, str]:
    """Makes the runs that are not done; see `Book.make_all`. Returns the reason of each failure, by the run's name."""
    trainings = [Training(run, corpus, place) for run in runs]
    failed = place.make_all(trainings, lambda training, _: make(*training))
    for run in runs:
        shutil.rmtree(place.model(run) / "kept", ignore_errors=True)  # they are large, and measured now
    return failed


def make(run: Run, corpus: Corpus, place: Place) -> dict[str, Any]:
    """Trains a run from its last checkpoint, translates the test sets, and returns its log.

    Args:
        run: The run.
        corpus: The text, and the options of the training.
        place: The folders of the corpus.

    Raises:
        UserError: A process failed.
    """
    place.run(run).mkdir(parents=True, exist_ok=True)
    config, model = place.run(run) / "options.json", place.model(run)
    with atomic_write(config) as file:
        json.dump(options_of(run, corpus, place), file, indent=2)

    def call(*arguments: str) -> None:
        execute(place, "-m", *arguments, output=place.run(run) / "output.txt")

    training = ["--model", str(model), "--config", str(config)]
    shares = run.row.section == "main" and not run.of_grid
    # keep the models of all validations
    keep = ["--keep", str(options_of(run, corpus, place)["finish_after"])] if shares else []
    if run.row.centre and not (model / "last.npz").exists():
        moved = ["--centre", str(run.row.centre), "--moved", run.row.moved]
        call("experiments.translation.inside.recentre", *training, *moved)
    try:
        call("nmt", "train", *training, *keep)
    except UserError:
        if not _is_whole(run, corpus, place):
            raise
    log = _describe(run, corpus, place)
    if run.tested:
        log["tests"] = _tested(run, corpus, place, call)
    if shares:
        log["mean_share"] = _measured("mean_shares", run, corpus, place, call)
    return log


def _tested(run: Run, corpus: Corpus, place: Place, call: Callable[..., None]) -> dict[str, Any]:
    """Translates all test sets with one start of the program, and returns the BLEU of each."""
    files = {test: corpus.files(part, place.work) for test, part in corpus.tests.items()}
    sources, output = place.run(run) / "sources", place.run(run) / "translations"
    with atomic_write(sources) as file:
        file.writelines(f"{line}\n" for source, _ in files.values() for line in read_lines(source))
    call("nmt", "translate", "-m", str(place.model(run)), "-i", str(sources), "-o", str(output), "-n")
    place.logs.mkdir(parents=True, exist_ok=True)
    lines, found = iter(read_lines(output)), {}
    for test, (_, reference) in files.items():
        references = read_lines(reference)
        translations = list(itertools.islice(lines, len(references)))
        with atomic_write(place.translations(run, test)) as file:
            file.writelines(f"{line}\n" for line in translations)
        score = bleu(translations, references)
        chrf = sacrebleu.corpus_chrf(translations, [references]).score
        found[test] = {"bleu": score.score, "signature": score.signature, "chrf": chrf}
    return found


def _is_whole(run: Run, corpus: Corpus, place: Place) -> bool:
    """Returns whether a training made all its updates. It fails at its end if it diverged, which is a result too."""
    progress = place.model(run) / "progress.json"
    made = json.loads(progress.read_text(encoding="utf-8"))["update"] if progress.exists() else 0
    return made >= options_of(run, corpus, place)["finish_after"]


def _measured(program: str, run: Run, corpus: Corpus, place: Place, call: Callable[..., None]) -> dict[str, Any]:
    """Returns what a program of `inside/` measures with the validation text."""
    (source, target), found = corpus.files(corpus.valid, place.work), place.run(run) / f"{program}.json"
    files = ("--model", str(place.model(run)), "--source", source, "--target", target, "--to", str(found))
    call(f"experiments.translation.inside.{program}", *files)
    return json.loads(found.read_text(encoding="utf-8"))


def options_of(run: Run, corpus: Corpus, place: Place) -> dict[str, Any]:
    """Returns the options of `nmt train` for a run."""
    chosen = {"layer_normalization_type": run.row.normalization, "seed": run.seed}
    step_size = {} if run.step_size is None else {"learning_rate": run.step_size}
    return {**corpus.training(place.work), **run.row.options, **chosen, **step_size}


def _describe(run: Run, corpus: Corpus, place: Place) -> dict[str, Any]:
    """Returns the log without the results on the test sets."""
    progress, versions = (
        json.loads((place.model(run) / f"{name}.json").read_text(encoding="utf-8")) for name in ("progress", "versions")
    )
    return {
        "row": run.row.name,
        "label": run.row.label,
        "seed": run.seed,
        "centre": run.row.centre,
        "moved": run.row.moved,
        "options": portable(options_of(run, corpus, place)),
        "step_size_chosen": run.step_size is not None,
        "validations": progress["validations"],
        "skipped": progress["skipped"],
        "versions": versions,
        "commit": commit_of(place),
        "cores": os.cpu_count(),
        "tests": {},
    }


def portable(options: dict[str, Any]) -> dict[str, Any]:
    """Returns options with file names instead of paths, so that a log reveals nothing about the machine."""

    def name(value: Any) -> Any:
        return Path(value).name if isinstance(value, str) else value

    return {
        key: [name(each) for each in value] if isinstance(value, list) else name(value)
        for key, value in options.items()
    }
