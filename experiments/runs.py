"""Trains one run and leaves a log of it: what it was trained with, its validations, and BLEU of its test sets."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import sacrebleu

from .baseline import ROOT
from .corpus import Corpus
from .errors import UserError
from .files import write_aside
from .plan import Run


class Place(NamedTuple):
    """Where the work of a corpus goes."""

    work: Path  # text, vocabularies, trainings
    logs: Path  # what is left of a run that is done

    @property
    def baseline(self) -> Path:
        """The patched copy."""
        return self.work / "baseline"

    def log(self, run: Run) -> Path:
        """The log of a run, which is there when the run is done."""
        return self.logs / f"{run.name}.json"

    def translations(self, run: Run, test: str) -> Path:
        """The translations of a test set by a run, beside its log."""
        return self.logs / f"{run.name}.{test}"

    def model(self, run: Run) -> Path:
        """The directory of a run's model."""
        return self.work / "runs" / run.name / "model"


def options_of(run: Run, corpus: Corpus, place: Place) -> dict[str, Any]:
    """Returns the options that `nmt train` is given for a run."""
    return {
        **corpus.training(place.work),
        "layer_normalization_type": run.row.normalization,
        "seed": run.seed,
    }


def is_done(run: Run, corpus: Corpus, place: Place) -> bool:
    """Whether there is a log of a run.

    Raises:
        UserError: The log is of a run with other options.
    """
    if not place.log(run).exists():
        return False
    done, wanted = read_log(run, place)["options"], _portable(options_of(run, corpus, place))
    if changed := sorted(name for name in done.keys() | wanted.keys() if done.get(name) != wanted.get(name)):
        raise UserError(
            f"{place.log(run)} is of a run with another {', another '.join(changed)}; "
            f"move {place.logs} and {place.work} away, or put back what it was run with"
        )
    return True


def read_log(run: Run, place: Place) -> dict[str, Any]:
    """Returns the log of a run that is done."""
    return json.loads(place.log(run).read_text(encoding="utf-8"))


def make(run: Run, corpus: Corpus, place: Place, execute: Callable[..., None]) -> None:
    """Trains a run from where it stands, translates its test sets, and leaves its log.

    Args:
        run: What to train.
        corpus: What to train it on.
        place: Where its work goes.
        execute: Runs a module, given where its output goes, its name and its arguments.
    """
    options, model = options_of(run, corpus, place), place.model(run)
    model.parent.mkdir(parents=True, exist_ok=True)
    config = model.parent / "options.json"
    with write_aside(config) as file:
        json.dump(options, file, indent=2)
    output = model.parent / "output.txt"
    training = ["--model", str(model), "--config", str(config)]
    if run.row.centre and not (model / "last.npz").exists():
        execute(output, "experiments.recentre", *training, "--centre", str(run.row.centre))
    execute(output, "nmt", "train", *training)
    tests = {}
    for test, part in corpus.tests.items():
        source, reference = corpus.files(part, place.work)
        place.logs.mkdir(parents=True, exist_ok=True)
        translations = place.translations(run, test)
        execute(output, "nmt", "translate", "-m", str(model), "-i", source, "-o", str(translations), "-n")
        tests[test] = _bleu(translations, Path(reference))
    _write_log(run, corpus, place, tests)


def _bleu(translations: Path, references: Path) -> dict[str, Any]:
    metric = sacrebleu.BLEU()
    score = metric.corpus_score(read_lines(translations), [read_lines(references)]).score
    return {"bleu": score, "signature": str(metric.get_signature())}


def read_lines(path: Path) -> list[str]:
    """Returns the lines of a text."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _write_log(run: Run, corpus: Corpus, place: Place, tests: dict[str, Any]) -> None:
    progress = json.loads((place.model(run) / "progress.json").read_text(encoding="utf-8"))
    log = {
        "row": run.row.name,
        "label": run.row.label,
        "seed": run.seed,
        "centre": run.row.centre,
        "partial": run.row.partial,
        "options": _portable(options_of(run, corpus, place)),
        "validations": progress["validations"],
        "skipped": progress["skipped"],
        "tests": tests,
        "versions": json.loads((place.model(run) / "versions.json").read_text(encoding="utf-8")),
        "commit": commit(),
        "cores": os.cpu_count(),
    }
    with write_aside(place.log(run)) as file:
        json.dump(log, file, indent=2)
        file.write("\n")


def _portable(options: dict[str, Any]) -> dict[str, Any]:
    """Leaves the folder out of the names of files, so that a log says nothing of the machine."""

    def name(value: Any) -> Any:
        return Path(value).name if isinstance(value, str) and os.path.isabs(value) else value

    return {
        key: [name(each) for each in value] if isinstance(value, list) else name(value)
        for key, value in options.items()
    }


def commit() -> str:
    """Returns the commit of this checkout, with a plus where something tracked is changed."""
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    return subprocess.run(describe, capture_output=True, text=True).stdout.strip() or "unknown"
