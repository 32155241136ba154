"""Trains every condition on a corpus, measures, and reports: the task `translation`."""

import itertools
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.storage.files import exclusive

from ..invariance import task as invariance
from ..reporting.differences import differences_section
from ..reporting.judging import RULE, judge
from ..reporting.section import Claim, Section
from ..reporting.writer import summary_of, write_report
from ..runs.store import ROOT
from .baseline import Store, make_baseline
from .claims import questions
from .corpus import Corpus, prepare, read_corpus
from .preregistrations import PREREGISTRATIONS, preregistration_of
from .results import Result, choose, read_results
from .runs import make_all, measure_seconds
from .schedule import corpus_runs, grid_runs, read_conditions, seed_runs
from .sections import curves, figures, quality, shared

_DATA = "demo"  # by default
_MEASURE = "BLEU is over all test sets; the training loss is the last, and dev BLEU the best."
_SIZES = {
    "transformer_enc_depth": "encoder layers",
    "transformer_dec_depth": "decoder layers",
    "transformer_num_heads": "heads",
    "transformer_ffn_hidden_size": "units in the feed-forwards",
}
_MODELS = {"rnn": "RNNSearch as in Nematus", "transformer": "A Transformer"}


def reproduce(data: str, so_far: bool, root: Path = ROOT, seeds: Collection[int] = ()) -> None:
    """Trains every condition on a corpus, measures, and writes the report.

    Args:
        data: Name of a corpus or of a plan, or a folder of text. An empty string means the corpus
            `demo`. The report on a corpus of a plan is that on the plan.
        so_far: Report on the runs that are done; train and measure nothing.
        root: The folder of logs, work and report.
        seeds: The only seeds to train, after the grid of learning rates. If some are given, nothing
            is measured.

    Raises:
        UserError: A seed of `seeds` is that of no condition; or, after the report on what is done,
            a run or a measurement failed, or nothing is done yet.
    """
    failed: dict[str, str] = {}
    corpora = [
        read_corpus(name)
        for name in (
            PREREGISTRATIONS[data].corpora if data in PREREGISTRATIONS else [data or _DATA]
        )
    ]
    runs = itertools.chain(*map(corpus_runs, corpora))
    known = {run.seed for run in runs}
    unknown = sorted({*seeds} - known)
    if unknown:
        raise UserError(
            f"--seeds: no condition is trained with the seed {', '.join(map(str, unknown))}"
        )
    for each in corpora:
        failed |= {} if so_far else _make(each, Store(each.name, root), seeds)
    corpus = corpora[-1]  # those of a plan have one report
    store = Store(corpus.name, root)
    wrong = [f"{name} failed: {why}" for name, why in failed.items()]
    plan = preregistration_of(corpus.name)
    if plan.report(root, list(failed)) if plan else report(corpus, store, list(failed)):
        print(summary_of(store.report))
    else:
        wrong.insert(
            0,
            f"no training on {data or _DATA} is done yet"
            + "; without --so-far they start, and `python -m experiments.publish --unpack NAME` "
            "brings the kept logs of a report" * so_far,
        )
    if wrong:
        raise UserError("; ".join(wrong))


def report(corpus: Corpus, store: Store, failed: Sequence[str] = ()) -> bool:
    """Writes the report on the trainings that are done; returns whether there are some.

    It names those that failed.

    Raises:
        UserError: A log is of a training with other options.
    """
    conditions = corpus.select(read_conditions())
    grid = read_results(grid_runs(conditions, corpus.step_sizes), corpus, store)
    runs = list(seed_runs(choose(conditions, grid, corpus.step_sizes), corpus.seeds))
    results = read_results(runs, corpus, store)
    if results:
        wanted = sum(min(condition.seeds, corpus.seeds) for condition in conditions)
        trained, measured = _describe(corpus, results, grid, wanted)
        missing = [f"Failed, and not reported: {', '.join(failed)}."] if failed else []
        facts = {
            "corpus": corpus.name,
            "about": list(corpus.remarks),
            "options": corpus.options,
            "failed": failed,
            **measured,
        }
        write_report(
            store.report,
            f"RMSNorm in translation: {corpus.title}",
            [trained, *missing, *corpus.remarks],
            facts,
            _sections(results, grid, corpus, store),
        )
    return bool(results)


def _make(corpus: Corpus, store: Store, seeds: Collection[int]) -> dict[str, str]:
    """Trains and measures what is not done yet; returns the reason of each failure, by name."""
    conditions = corpus.select(read_conditions())
    with exclusive(store.work):
        make_baseline(store)
        prepare(corpus, store)
        grid = grid_runs(conditions, corpus.step_sizes)
        failed = make_all(grid, corpus, store)
        chosen = choose(conditions, read_results(grid, corpus, store), corpus.step_sizes)
        runs = list(seed_runs(chosen, corpus.seeds, seeds))
        failed |= make_all(runs, corpus, store)
        if seeds or preregistration_of(corpus.name):  # a plan judges no times
            return failed
        # Do not time a norm that a condition builds if its training failed: the norm may be the
        # reason.
        timed = [
            run.condition
            for run in runs
            if run.condition.section == "main" and (run.condition.kind or run.name not in failed)
        ]
        kinds = list(dict.fromkeys(condition.normalization for condition in timed))
        try:
            measure_seconds(kinds, corpus, store)
        except UserError as error:
            failed["measuring seconds"] = str(error)
    return failed


def _describe(
    corpus: Corpus, results: Sequence[Result], grid: Sequence[Result], count: int
) -> tuple[str, dict[str, Any]]:
    """Returns what was trained, in words, and the facts of the report."""
    logs = [result.log for result in [*results, *grid]]
    options = corpus.options
    versions = {}
    for name in logs[0]["versions"]:
        versions[name] = sorted({log["versions"][name] for log in logs})
    facts = {
        "commits": sorted({log["commit"] for log in logs}),
        "versions": versions,
        "cores": sorted({log["cores"] for log in logs}),
    }
    libraries = [f"{name} {' and '.join(found)}" for name, found in versions.items()]
    lengths = sorted({each.log["options"]["finish_after"] for each in results})
    step_size = f"learning rate {options['learning_rate']:g}"
    if corpus.step_sizes:
        step_size = "a learning rate for each row"
    besides = f", besides {len(grid)} that choose learning rates" if grid else ""
    sizes = [f"embedding {options['embedding_size']}", f"state {options['state_size']}"]
    sizes += [f"{options[name]} {words}" for name, words in _SIZES.items() if name in options]
    return (
        f"{_MODELS[corpus.model_type]}, {', '.join(sizes)}, "
        f"vocabularies of {corpus.vocabulary_size:,}, batches of {options['batch_size']}, "
        f"{' or '.join(f'{each:,}' for each in lengths)} updates of Adam with {step_size}. "
        f"{len(results)} of {count} trainings are done{besides}, on at most "
        f"{' and '.join(map(str, facts['cores']))} processor cores, "
        f"with commit {', '.join(facts['commits'])} and {', '.join(libraries)}.",
        facts,
    )


def _sections(
    results: Sequence[Result], grid: Sequence[Result], corpus: Corpus, store: Store
) -> list[Section]:
    """Returns the sections for which there are results."""
    times = store.read_times()
    found = [
        quality.section(results),
        differences_section(judge(questions(results)), f"{RULE} {_MEASURE}"),
        shared.step_sizes(grid),
        shared.speed_of(results, times),
        curves.section(results, times),
        figures.centre_section(results),
        figures.partial_section(results),
        shared.mean_share(results),
        invariance.section(invariance.measure_invariance()) if corpus.model_type == "rnn" else None,
        _initial_scale(store),
    ]
    return [section for section in found if section]


def _initial_scale(store: Store) -> Section | None:
    """Returns the section of the norms of untrained models, measured once for `multi30k`."""
    written = store.read_file("initial_scale_section")
    if not written:
        return None
    written["claims"] = [Claim(*each) for each in written["claims"]]
    return Section("initial_scale", data=store.read_file("initial_scale"), **written)
