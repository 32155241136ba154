"""Trains every condition on a corpus, measures, and reports: the task `translation`."""

import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.storage.files import exclusive

from ..invariance import section as invariance
from ..invariance.measure import measure_invariance
from ..reporting.differences import differences_section
from ..reporting.judging import RULE, judge
from ..reporting.section import Section
from ..reporting.writer import told, write_report
from ..runs.store import ROOT
from .baseline import make_baseline
from .claims import questions
from .corpus import Corpus, prepare, read_corpus
from .measure import measure_seconds
from .preregistrations import PREREGISTRATIONS, preregistration_of
from .results import Result, choose, read_results
from .runs import make_all
from .schedule import corpus_runs, grid_runs, read_conditions, seed_runs
from .sections import centre, curves, initial_scale, partial, quality, shared, speed
from .store import Store

_DATA = "demo"  # by default
_MEASURE = "BLEU is over all test sets; the training loss is the last, and dev BLEU the best."
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
        raise UserError(f"--seeds: no row is trained with the seed {', '.join(map(str, unknown))}")
    for corpus in corpora:
        store = Store(corpus.name, root)
        failed |= {} if so_far else _make(corpus, store, seeds)
    wrong = [f"{name} failed: {why}" for name, why in failed.items()]
    plan = preregistration_of(corpus.name)
    if plan.report(root, list(failed)) if plan else report(corpus, store, list(failed)):
        print(told(store.report))
    else:
        wrong.insert(0, f"no training on {data or _DATA} is done yet")
    if wrong:
        raise UserError("; ".join(wrong))


def report(corpus: Corpus, store: Store, failed: Sequence[str] = ()) -> bool:
    """Writes the report on the trainings that are done, and names those that failed; returns
    whether there are some.

    Raises:
        UserError: A log is of a training with other options.
    """
    conditions = corpus.adapt(read_conditions())
    grid = read_results(grid_runs(conditions, corpus.step_sizes), corpus, store)
    runs = list(seed_runs(choose(conditions, grid, corpus.step_sizes), corpus.seeds))
    results = read_results(runs, corpus, store)
    if results:
        wanted = sum(min(condition.seeds, corpus.seeds) for condition in conditions)
        about, facts = _describe(corpus, results, grid, wanted, failed)
        sections = _sections(results, grid, corpus, store)
        title = f"RMSNorm in translation: {corpus.title}"
        write_report(store.report, title, about, facts, sections)
    return bool(results)


def _make(corpus: Corpus, store: Store, seeds: Collection[int]) -> dict[str, str]:
    """Trains and measures what is not done yet; returns the reason of each failure, by name."""
    conditions = corpus.adapt(read_conditions())
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
        # Do not time a norm that a condition builds if its training failed: the norm may be the reason.
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
    corpus: Corpus,
    results: Sequence[Result],
    grid: Sequence[Result],
    count: int,
    failed: Sequence[str],
) -> tuple[list[str], dict[str, Any]]:
    """Returns the beginning of the report, in words and as JSON."""
    logs = [result.log for result in [*results, *grid]]
    options = corpus.options
    commits = sorted({log["commit"] for log in logs})
    cores = sorted({log["cores"] for log in logs})
    versions = {}
    for name in logs[0]["versions"]:
        versions[name] = sorted({log["versions"][name] for log in logs})
    libraries = ", ".join(f"{name} {' and '.join(found)}" for name, found in versions.items())
    lengths = sorted({each.log["options"]["finish_after"] for each in results})
    updates = " or ".join(f"{each:,}" for each in lengths)
    step_size = (
        "a learning rate for each row"
        if corpus.step_sizes
        else f"learning rate {options['learning_rate']:g}"
    )
    besides = f", besides {len(grid)} that choose learning rates" if grid else ""
    about = [
        f"{_MODELS[corpus.model_type]}, {_sizes(options)}, "
        f"vocabularies of {corpus.vocabulary_size:,}, batches of {options['batch_size']}, "
        f"{updates} updates of Adam with {step_size}. {len(results)} of {count} trainings "
        f"are done{besides}, on at most {' and '.join(map(str, cores))} processor cores, "
        f"with commit {', '.join(commits)} and {libraries}.",
        *([f"Failed, and not reported: {', '.join(failed)}."] if failed else []),
        *corpus.remarks,
    ]
    facts = {
        "corpus": corpus.name,
        "about": list(corpus.remarks),
        "options": options,
        "rows": corpus.conditions,
    }
    return about, {
        **facts,
        "failed": failed,
        "commits": commits,
        "versions": versions,
        "cores": cores,
    }


def _sizes(options: Mapping[str, Any]) -> str:
    """Returns the sizes of the model in words, those of a Transformer as far as the options have them."""
    names = {"encoder layers": "enc_depth", "decoder layers": "dec_depth", "heads": "num_heads"}
    names["units in the feed-forwards"] = "ffn_hidden_size"
    given = {words: options.get(f"transformer_{name}") for words, name in names.items()}
    found = [f"embedding {options['embedding_size']}", f"state {options['state_size']}"]
    return ", ".join([*found, *(f"{number} {words}" for words, number in given.items() if number)])


def _sections(
    results: Sequence[Result], grid: Sequence[Result], corpus: Corpus, store: Store
) -> list[Section]:
    """Returns the sections for which there are results."""
    times = store.read_times()
    found = [
        quality.section(results),
        differences_section(judge(questions(results)), f"{RULE} {_MEASURE}"),
        shared.step_sizes(grid),
        speed.section(results, times),
        curves.section(results, times),
        centre.section(results),
        partial.section(results),
        shared.mean_share(results),
        invariance.section(measure_invariance()) if corpus.model_type == "rnn" else None,
        initial_scale.section(store.read_file("initial_scale")),
    ]
    return [section for section in found if section]
