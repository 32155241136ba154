"""Runs a task: grid of learning rates, reported seeds, times of updates, report."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np

from benchmarks.runner import seconds_of
from nmt.errors import UserError
from nmt.storage.files import exclusive

from ..reporting.section import Section
from ..reporting.speed import AGAIN, PROCESSES
from ..reporting.writer import summary_of, write_report
from .learning import Learning, claims_section, learning_section
from .networks import Networks, in_batches
from .run import SEEDS, Condition, Run, Setting, best_step_sizes, grid_runs, seed_runs
from .sections import Logs, share_section, step_sizes_section, times_section
from .store import ROOT, LogStore, Restart, gflops, provenance


@dataclass(frozen=True)
class Experiment:
    """What a task compares, and how it reports."""

    name: str  # name of the folder of its logs
    title: str  # title of the report
    conditions: Sequence[Condition]  # the kinds of normalization
    settings: Sequence[Setting]  # the settings to train in
    metric: str  # key of a validation. The lowest value chooses the learning rate
    metric_label: str  # the metric in words
    learning: Learning  # the first section of the report
    # reads data, of which DATA says where it is, and returns the networks
    load: Callable[[str], Networks]
    # the learning rates of Adam from which each condition takes the best
    step_sizes: Sequence[float] = (1e-3 / 3, 1e-3, 3e-3)
    # what the means in the section on the share of the mean run over, in words
    share_over: str = "the units"
    # returns sections that only this task has
    more_sections: Callable[[Logs], Sequence[Section]] = lambda logs: ()
    # the published times of the conditions by their names, in any unit
    published_times: Mapping[str, float] = field(default_factory=dict)
    about: Sequence[str] = ()  # paragraphs at the beginning of the report, in Markdown
    seeds: Sequence[int] = SEEDS  # the reported seeds
    minutes: float = 0  # of a training on two cores; 0 if that was not measured
    rounds: int = 30  # rounds of the timing, in which all conditions take turns

    def reproduce(self, data: str, so_far: bool, root: Path = ROOT) -> None:
        """Trains and times what is not done yet, and writes the report.

        Args:
            data: As the task's `load` takes it; not read if only a report is wanted.
            so_far: Report on the runs that are done; train and measure nothing.
            root: The folder of logs and report.

        Raises:
            UserError: The data is not there, or nothing is done yet.
        """
        store = LogStore(self.name, root)
        if not so_far:
            networks = self.load(data)
            with exclusive(store.work):
                _make(store, self, networks)
        if not self.report(store):
            raise UserError(
                f"no training of the task {self.name} is done yet; without --so-far they start, "
                f"and `python -m experiments.publish --unpack {self.name}` brings kept logs"
            )
        print(summary_of(store.report))

    def report(self, store: LogStore, remarks: Sequence[str] = ()) -> bool:
        """Writes the report on the runs that are done, and returns whether there are some.

        `remarks` are paragraphs that explain the results.
        """
        logs = store.read_all(grid_runs(self.conditions, self.settings, self.step_sizes))
        logs |= store.read_all(
            seed_runs(best_step_sizes(logs, self.metric, self.step_sizes), self.seeds)
        )
        if not logs:
            return False
        lengths = [
            f"{each.updates:,} updates ({each.label}; {each.updates * each.batch_size:,} examples)"
            for each in self.settings
        ]
        about = [*self.about, f"A training has {' or '.join(lengths)}."]
        found = [
            learning_section(logs, self.learning),
            claims_section(logs, self.learning.comparisons),
            step_sizes_section(logs, self.metric, self.metric_label),
            share_section(logs, self.share_over),
            *self.more_sections(logs),
            times_section(store.read_times(), logs, self.published_times),
        ]
        sections = [section for section in found if section]
        write_report(
            store.report,
            self.title,
            [*remarks, *about],
            {"task": self.name, "about": about},
            sections,
        )
        return True


def _make(store: LogStore, experiment: Experiment, networks: Networks) -> None:
    make = functools.partial(train, networks=networks)
    grid = grid_runs(experiment.conditions, experiment.settings, experiment.step_sizes)
    failed = store.make_all(grid, make, experiment.minutes)
    best = best_step_sizes(store.read_all(grid), experiment.metric, experiment.step_sizes)
    failed |= store.make_all(seed_runs(best, experiment.seeds), make, experiment.minutes)
    if failed:
        raise UserError("; ".join(f"{name} failed: {why}" for name, why in failed.items()))
    times = [each for each in store.read_times() if _times_all(each, experiment)]
    if len(times) < PROCESSES:
        store.write_times([*times, time_updates(experiment, networks)])
        raise Restart  # so that each process measures once


def _times_all(times: Mapping[str, Any], experiment: Experiment) -> bool:
    """Returns whether a process timed all conditions; if one is new, all are timed again."""
    timed = [times["seconds"].get(each.name, {}).get("XLA", {}) for each in experiment.settings]
    names = {condition.name for condition in experiment.conditions}
    return all(names <= each.keys() for each in timed)


def time_updates(experiment: Experiment, networks: Networks) -> dict[str, Any]:
    """Times the updates of every condition in turn, `layernorm` twice.

    Nothing else should run at that time.

    Returns:
        `seconds`, by setting, then by `XLA` or `plain`, then by condition: the seconds of an update
        in each round. `gflops`, before and after: the speed of the machine.
    """
    checks = [gflops()]
    named = {condition.name: condition for condition in experiment.conditions}
    named[AGAIN] = named["layernorm"]
    seconds: dict[str, dict[str, Any]] = {}
    for setting in experiment.settings:
        batch = networks.batch(np.arange(setting.batch_size), setting)
        for mode, compiled in (("XLA", True), ("plain", False)):
            runs = {
                name: Run(condition, setting, 1, experiment.step_sizes[0])
                for name, condition in named.items()
            }
            calls = {
                name: _update(networks.build(run), compiled, batch) for name, run in runs.items()
            }
            seconds.setdefault(setting.name, {})[mode] = seconds_of(calls, experiment.rounds)
            keras.backend.clear_session()
    checks.append(gflops())
    return {"seconds": seconds, "gflops": checks, **provenance()}


def _update(model: keras.Model, compiled: bool, batch: tuple[Any, Any]) -> Callable[[], object]:
    """Returns a function that makes one update, compiled by XLA or as plain operations."""
    model.compile(optimizer=model.optimizer, loss=model.loss, jit_compile=compiled)
    tensors = keras.tree.map_structure(keras.ops.convert_to_tensor, batch)
    return lambda: model.train_on_batch(*tensors)


def train(run: Run, networks: Networks) -> dict[str, Any]:
    """Trains the network of a run in windows of updates, validates it, and returns its log.

    Args:
        run: The run.
        networks: The networks of its task.

    Returns:
        `train`, the `update` and the mean `loss` of each window; `validations`, with `update` and
        the values of `Networks.validate`; `seconds` of the updates; `mean_share`, the shares of the
        mean at `first` and at `last`; and the values of `Networks.results`.
    """
    keras.backend.clear_session()
    shares = {"first": networks.mean_shares(networks.build(run))}
    setting = run.setting
    model = networks.build(run)
    losses = []
    validations = []
    seconds = 0.0
    for start in range(0, setting.updates, setting.window):
        end = min(start + setting.window, setting.updates)
        count = (end - start) * setting.batch_size
        numbers = order(run.seed, start * setting.batch_size, count, networks.examples)
        batches = in_batches(*networks.batch(numbers, setting), batch_size=setting.batch_size)
        begin = time.perf_counter()
        history = model.fit(batches, shuffle=False, verbose=0)
        seconds += time.perf_counter() - begin
        losses.append({"update": end, "loss": history.history["loss"][0]})
        if end % setting.validate_every == 0 or end == setting.updates:
            validations.append({"update": end, **networks.validate(model)})
    shares["last"] = networks.mean_shares(model)
    log = {"train": losses, "validations": validations, "seconds": seconds, "mean_share": shares}
    return log | networks.results()


def order(seed: int, start: int, count: int, size: int) -> np.ndarray:
    """Returns the indices of `count` examples from number `start` on.

    Every epoch has its own permutation.

    >>> sorted(order(1, 0, 4, 4).tolist())
    [0, 1, 2, 3]
    >>> order(1, 6, 2, 4).tolist() == order(1, 4, 4, 4).tolist()[2:]
    True
    """
    epochs = range(start // size, (start + count - 1) // size + 1)
    shuffled = np.concatenate(
        [np.random.default_rng([seed, epoch]).permutation(size) for epoch in epochs]
    )
    return shuffled[start - epochs.start * size :][:count]
