"""`python -m experiments [DATA]`: trains what is not trained yet, measures, and writes the report to build/report."""

import argparse
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.files import use_alone

from . import invariance, significance, timing
from .baseline import make_baseline
from .corpus import Corpus, is_prepared, prepare, read_corpus
from .place import Place
from .plan import Run, all_runs, read_rows
from .report import write_report
from .results import Result, read_results
from .section import Section
from .sections import activations, centre, curves, partial, table2, time_split
from .sections import invariance as invariance_section
from .sections import significance as significance_section
from .training import train_all


def reproduce(data: str, so_far: bool) -> None:
    """Trains every row on a corpus, measures, and writes the report; so far: of what is done, and does nothing else.

    Raises:
        UserError: Something cannot be done, or is not done. If there is anything to report, it is reported before.
    """
    corpus = read_corpus(data)
    place = Place(corpus.name)
    runs = list(all_runs(corpus.adapt(read_rows()), corpus.seeds))
    failed = {} if so_far else _make(runs, corpus, place)
    results = read_results(runs, corpus, place)
    wrong = [f"{name} failed: {why}" for name, why in failed.items()]
    if results:
        about, facts = _describe(corpus, results, len(runs), list(failed))
        sections = _sections(results, corpus, place)
        aside = place.report.with_name("report.part")
        shutil.rmtree(aside, ignore_errors=True)
        write_report(aside, f"RMSNorm in translation: {corpus.title}", about, facts, sections)
        shutil.rmtree(place.report, ignore_errors=True)
        aside.rename(place.report)
        print(f"{place.report / 'report.html'} is written")
    else:
        wrong.insert(0, f"no training on {corpus.name} is done yet")
    if wrong:
        raise UserError("; ".join(wrong))


def _make(runs: Sequence[Run], corpus: Corpus, place: Place) -> dict[str, str]:
    """Trains and measures what is not done yet; returns what failed, and why."""
    with use_alone(place.work):
        make_baseline(place)
        prepare(corpus, place)
        failed = train_all(runs, corpus, place)
        # What a row builds may be at fault, and then is not to be measured.
        rows = [run.row for run in runs if run.row.section == "table2" and (run.row.kind or run.name not in failed)]
        try:
            timing.measure(list(dict.fromkeys(row.normalization for row in rows)), corpus, place)
        except UserError as error:
            failed["measuring seconds"] = str(error)
    return failed


def _describe(
    corpus: Corpus, results: Sequence[Result], count: int, failed: Sequence[str]
) -> tuple[list[str], dict[str, Any]]:
    """Returns what the report begins with, in words and as JSON."""
    logs, options = [result.log for result in results], corpus.options
    commits, cores = (sorted({log[name] for log in logs}) for name in ("commit", "cores"))
    versions = {name: sorted({log["versions"][name] for log in logs}) for name in logs[0]["versions"]}
    libraries = ", ".join(f"{name} {' and '.join(found)}" for name, found in versions.items())
    about = [
        f"RNNSearch as in Nematus, embedding {options['embedding_size']}, state {options['state_size']}, vocabularies "
        f"of {corpus.vocabulary_size:,}, batches of {options['batch_size']}, {options['finish_after']:,} updates of "
        f"Adam with step size {options['learning_rate']:g}. {len(results)} of {count} trainings are done, on "
        f"{' and '.join(map(str, cores))} processor cores, with commit {', '.join(commits)} and {libraries}.",
        *([f"Failed, and not reported: {', '.join(failed)}."] if failed else []),
        *corpus.remarks,
    ]
    facts = {"corpus": corpus.name, "options": options, "rows": corpus.rows}
    return about, {**facts, "failed": failed, "commits": commits, "versions": versions, "cores": cores}


def _sections(results: Sequence[Result], corpus: Corpus, place: Place) -> list[Section]:
    """Returns the sections that there is something for."""
    times, split = (timing.read(name, place) for name in (timing.TIMES, timing.SPLIT))
    found = [
        table2.section(results, times),
        significance_section.section(significance.measure(results, _references(corpus, place), place), results),
        curves.section(results, times),
        partial.section(results),
        centre.section(results),
        activations.section({each.row: each.log["activations"] for each in results if "activations" in each.log}),
        invariance_section.section(invariance.measure()),
        time_split.section(split, times) if split and times else None,
    ]
    return [section for section in found if section]


def _references(corpus: Corpus, place: Place) -> Mapping[str, Path]:
    """Returns the reference translation of each test set, if the text is in place."""
    prepared = is_prepared(corpus, place)
    return {test: Path(corpus.files(part, place.work)[1]) for test, part in corpus.tests.items() if prepared}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.split("`: ")[1])
    parser.add_argument("data", nargs="?", default="demo", help="a corpus of experiments/corpora, or a folder of text")
    parser.add_argument("--so-far", action="store_true", help="train and measure nothing: report on what is done")
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
