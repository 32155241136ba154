"""`python -m experiments [DATA]`: trains what is not trained yet, measures, and writes the report to build/report."""

import argparse
import json
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.files import write_aside

from . import invariance, significance
from .baseline import execute, make_baseline
from .corpus import Corpus, prepare, read_corpus
from .place import ROOT, Place
from .plan import all_runs, read_rows
from .report import write_report
from .results import Result, read_results
from .section import Section
from .sections import activations, centre, curves, partial, table2, time_split
from .sections import invariance as invariance_section
from .sections import significance as significance_section
from .training import train_all

_TIMED = ("--batches", "10", "--rounds", "12")


def reproduce(data: str, so_far: bool) -> None:
    """Trains every row on a corpus, measures, and writes the report."""
    corpus = read_corpus(data)
    place = Place.of(corpus.name)
    runs = list(all_runs(read_rows(), corpus.seeds))
    if not so_far:
        make_baseline(place)
        prepare(corpus, place)
        train_all(runs, corpus, place)
    results = read_results(runs, place)
    if not results:
        raise UserError(f"no training on {corpus.name} is done yet")
    times, split = _measure(corpus, place)
    folder = ROOT / "build" / "report"
    about, facts = _describe(corpus, results, len(runs))
    references = {test: Path(corpus.files(part, place.work)[1]) for test, part in corpus.tests.items()}
    sections = list(_sections(results, times, split, references))
    write_report(folder, f"RMSNorm in translation: {corpus.title}", about, facts, sections)
    print(f"{folder / 'report.html'} is written")


def _measure(corpus: Corpus, place: Place) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the seconds of an update by kind and how they split, measured once and kept with the logs."""
    config = str(place.work / "options.json")
    with write_aside(Path(config)) as file:
        json.dump(corpus.training(place.work), file, indent=2)
    benchmark = str(ROOT / "benchmarks" / "training.py")
    return (
        _once(place, "times.json", benchmark, *_TIMED, "--config", config, "--json"),
        _once(place, "time_split.json", "-m", "experiments.time_split", "--config", config, "--to"),
    )


def _once(place: Place, name: str, *command: str) -> dict[str, Any]:
    """Returns what a command writes into the file that is its last argument, unless it has done so before."""
    path = place.logs / name
    if not path.exists():
        print(f"measuring: {name}", file=sys.stderr)
        execute(place, *command, str(path))
    return json.loads(path.read_text(encoding="utf-8"))


def _describe(corpus: Corpus, results: Sequence[Result], count: int) -> tuple[list[str], dict[str, Any]]:
    """Returns what the report begins with, in words and as JSON."""
    commits = sorted({result.log["commit"] for result in results})
    versions, options = results[-1].log["versions"], corpus.options
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items())
    about = [
        f"RNNSearch as in Nematus, embedding {options['embedding_size']}, state {options['state_size']}, vocabularies "
        f"of {corpus.vocabulary_size:,}, batches of {options['batch_size']}, {options['finish_after']:,} updates of "
        f"Adam with step size {options['learning_rate']:g}. {len(results)} of {count} trainings are done, on "
        f"{results[-1].log['cores']} processor cores, with commit {', '.join(commits)} and {libraries}.",
    ]
    facts = {"corpus": corpus.name, "options": options, "commits": commits, "versions": versions}
    return about, {**facts, "cores": results[-1].log["cores"]}


def _sections(
    results: Sequence[Result], times: dict[str, Any], split: dict[str, Any], references: dict[str, Path]
) -> Iterator[Section]:
    yield table2.section(results, times)
    if tested := significance.measure(results, references):
        yield significance_section.section(tested)
    yield curves.section(results, times)
    yield partial.section(results)
    yield centre.section(results)
    yield activations.section({each.row.kind: each.log["activations"] for each in results if "activations" in each.log})
    yield invariance_section.section(invariance.measure())
    yield time_split.section(split)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.split("`: ")[1])
    parser.add_argument("data", nargs="?", default="demo", help="a corpus of experiments/corpora, or a folder of text")
    parser.add_argument("--so-far", action="store_true", help="train nothing: report on what is done")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        reproduce(options.data, options.so_far)
    except UserError as error:
        print(f"experiments: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
