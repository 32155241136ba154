"""Makes a run and its log: options, validations, BLEU of the test sets; times updates."""

import itertools
import os
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sacrebleu

from nmt.errors import UserError
from nmt.storage.files import atomic_write, read_json, write_json
from nmt.text.lines import read_lines

from ..reporting.speed import PROCESSES
from ..runs.store import gflops, usable_cores
from .baseline import Store, commit_of, execute
from .condition import Run
from .corpus import Corpus

SECOND_LAYERNORM = "layernorm 2"  # the name of LayerNorm's second model
_BENCHMARK = ("benchmarks/training.py", "--batches", "6", "--rounds", "30")


class CorpusRun(NamedTuple):
    """A run on a corpus, as the store of its logs knows it."""

    run: Run
    corpus: Corpus
    store: Store

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def given(self) -> dict[str, Any]:
        """The options of `nmt train`."""
        chosen = {
            "layer_normalization_type": self.run.condition.normalization,
            "seed": self.run.seed,
        }
        step_size = {} if self.run.step_size is None else {"learning_rate": self.run.step_size}
        return {
            **self.corpus.training(self.store.work),
            **self.run.condition.options,
            **chosen,
            **step_size,
        }

    @property
    def options(self) -> dict[str, Any]:
        """The options of the training, and what else a log must share with it."""
        condition = self.run.condition
        tests = sorted(self.corpus.tests) if self.run.tested else []
        return {
            **portable(self.given),
            "centre": condition.centre,
            "moved": condition.moved,
            "tests": tests,
        }

    def options_of(self, log: Mapping[str, Any]) -> dict[str, Any]:
        return {
            **log["options"],
            "centre": log["centre"],
            "moved": log["moved"],
            "tests": sorted(log["tests"]),
        }

    @property
    def whole(self) -> bool:
        """Whether it has ended.

        Its status does not tell: it fails at its end if it diverged, which is a result too.
        """
        model = self.store.model(self.run)
        if not (model / "progress.json").exists():
            return False
        progress = read_json(model / "progress.json")
        options = read_json(model / "config.json")
        return (
            progress["update"] >= options["finish_after"]
            or progress["bad_validations"] >= options["patience"]
        )


def make_all(runs: Sequence[Run], corpus: Corpus, store: Store) -> dict[str, str]:
    """Makes the runs that are not done; see `LogStore.make_all`.

    Returns the reason of each failure, by the run's name.
    """
    failed = store.make_all(
        [CorpusRun(run, corpus, store) for run in runs],
        make,
        corpus.minutes,
    )
    for run in runs:
        if run.name not in failed:  # their kept models are large, and measured now
            shutil.rmtree(store.model(run) / "kept", ignore_errors=True)
    return failed


def make(corpus_run: CorpusRun) -> dict[str, Any]:
    """Trains a run from its last checkpoint, translates the test sets, and returns its log.

    Raises:
        UserError: A process failed.
    """
    run, corpus, store = corpus_run
    store.run(run).mkdir(parents=True, exist_ok=True)
    config = store.run(run) / "options.json"
    model = store.model(run)
    write_json(config, corpus_run.given)

    def call(*arguments: str) -> None:
        execute(store, "-m", *arguments, output=store.run(run) / "output.txt")

    files = ["--model", str(model), "--config", str(config)]
    shares = run.condition.section == "main" and not run.of_grid
    # Keep the models of all validations.
    keep = ["--keep", str(corpus_run.given["finish_after"])] if shares else []
    if run.condition.centre and not (model / "last.npz").exists():
        moved = ["--centre", str(run.condition.centre), "--moved", run.condition.moved]
        call("experiments.translation.inside.recentre", *files, *moved)
    try:
        call("nmt", "train", *files, *keep)
    except UserError:
        if not corpus_run.whole:
            raise
    log = _describe(corpus_run)
    if run.tested:
        log["tests"] = _tested(corpus_run, call)
    if shares:
        (source, target) = corpus.files(corpus.valid, store.work)
        found = store.run(run) / "mean_shares.json"
        text = ["--source", source, "--target", target, "--to", str(found)]
        call("experiments.translation.inside.mean_shares", "--model", str(model), *text)
        log["mean_share"] = read_json(found)
    return log


def _tested(corpus_run: CorpusRun, call: Callable[..., None]) -> dict[str, Any]:
    """Translates all test sets with one start of the program, and returns the BLEU of each."""
    run, corpus, store = corpus_run
    files = {test: corpus.files(part, store.work) for test, part in corpus.tests.items()}
    sources = store.run(run) / "sources"
    output = store.run(run) / "translations"
    with atomic_write(sources) as file:
        for source, _ in files.values():
            file.writelines(f"{line}\n" for line in _lines(source))
    call(
        "nmt", "translate", "-m", str(store.model(run)), "-i", str(sources), "-o", str(output), "-n"
    )
    lines = iter(_lines(output))
    found = {}
    for test, (_, reference) in files.items():
        references = _lines(reference)
        translations = list(itertools.islice(lines, len(references)))
        bleu = sacrebleu.BLEU()
        score = bleu.corpus_score(translations, [references]).score
        chrf = sacrebleu.corpus_chrf(translations, [references]).score
        found[test] = {"bleu": score, "signature": str(bleu.get_signature()), "chrf": chrf}
    return found


def _lines(path: str | os.PathLike) -> list[str]:
    return [line.decode() for line in read_lines(Path(path))]


def _describe(corpus_run: CorpusRun) -> dict[str, Any]:
    """Returns the log without the results on the test sets."""
    run = corpus_run.run
    model = corpus_run.store.model(run)
    progress = read_json(model / "progress.json")
    return {
        "row": run.condition.name,
        "label": run.condition.label,
        "seed": run.seed,
        "centre": run.condition.centre,
        "moved": run.condition.moved,
        "options": portable(corpus_run.given),
        "step_size_chosen": run.step_size is not None,
        "validations": progress["validations"],
        "skipped": progress["skipped"],
        "versions": read_json(model / "versions.json"),
        "commit": commit_of(corpus_run.store),
        "cores": usable_cores(),
        "tests": {},
    }


def portable(options: dict[str, Any]) -> dict[str, Any]:
    """Returns options with file names instead of paths.

    So a log reveals nothing about the machine.
    """

    def name(value: Any) -> Any:
        return Path(value).name if isinstance(value, str) else value

    return {
        key: list(map(name, value)) if isinstance(value, list) else name(value)
        for key, value in options.items()
    }


def measure_seconds(kinds: Collection[str], corpus: Corpus, store: Store) -> None:
    """Times the updates of all kinds in turn, in several processes.

    Nothing else should run at that time. LayerNorm is timed twice, to show the noise.

    Args:
        kinds: Kinds of normalization. If one of them is new, all are timed again.
        corpus: The corpus whose batches are used.
        store: Where the patched copy and the logs are.

    Raises:
        UserError: The benchmark failed.
    """
    processes = [
        each
        for each in store.read_times()
        if not {*kinds, SECOND_LAYERNORM} - each["updates"]["float32"].keys()
    ]
    options = store.work / "options.json"
    found = store.work / "times.json"
    write_json(options, corpus.training(store.work))
    given = [
        "--baseline",
        str(store.baseline),
        "--kinds",
        *kinds,
        "layernorm",
        "--config",
        str(options),
        "--json",
    ]
    while len(processes) < PROCESSES:
        print("measuring times", file=sys.stderr)
        before = gflops()
        execute(store, *_BENCHMARK, *given, str(found))
        measured = read_json(found)
        checks = [before, gflops()]
        processes.append({**measured, "commit": commit_of(store), "gflops": checks})
        store.write_times(processes)
