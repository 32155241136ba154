"""Splits the time of an update into norms, matrix products, softmax and the rest; runs in the patched copy.

    python -m experiments.time_split --config FILE.json --to FILE.json

XLA compiles an update into loops that mix the norms with what stands beside them, so a profile cannot tell how long a
norm takes. Therefore the norms' time is what the update takes longer than that of the same model without them, in turn
on the same batches. Matrix products are operations of their own, the softmax nearly so: their time is their share in
the profiles of further updates, of the time that an update takes unobserved. The rest is what is left.
"""

import argparse
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.interleaved import seconds_of
from benchmarks.updates import Work, new_update, real_work, threads, width
from nmt.files import write_aside

from .xla_profile import PROFILED, shares

KINDS = ("none", "layernorm", "rmsnorm")


def measure(work: Work, rounds: int) -> dict[str, Any]:
    """Returns how the time of one update splits.

    Args:
        work: The batches, each of which stands for as many updates as any other.
        rounds: How often each batch is timed, and profiled.

    Returns:
        `kinds`: the seconds of `norm`, `matmul`, `softmax`, `rest` and `total` of one update by kind, the mean over the
        batches of the median over the rounds; `norm_quartiles` by kind, those of the norms' seconds over the rounds;
        `threads`, on which an operation runs; and the padded `widths` of the batches.
    """
    updates = {kind: new_update(work, kind)[0] for kind in KINDS}
    seconds, profiles = [], []  # by batch
    for batch in work.batches:
        calls = {kind: functools.partial(update, batch) for kind, update in updates.items()}
        seconds.append(seconds_of(calls, rounds))
        profiles.append([{kind: shares(call) for kind, call in calls.items()} for _ in range(rounds)])
    totals = {kind: np.array([each[kind] for each in seconds]) for kind in KINDS}  # [batches, rounds]
    kinds, quartiles = {}, {}
    for kind, total in totals.items():
        norm = total - totals["none"]
        split = {"norm": _typical(norm)}
        for part in PROFILED:
            share = np.median([[each[kind][part] for each in runs] for runs in profiles], 1)  # [batches]
            split[part] = _typical(total * share[:, np.newaxis])
        kinds[kind] = {**split, "rest": _typical(total) - sum(split.values()), "total": _typical(total)}
        quartiles[kind] = np.quantile(norm.mean(0), [0.25, 0.75]).tolist()
    return {
        "kinds": kinds,
        "norm_quartiles": quartiles,
        "threads": threads(),
        "widths": [width(batch) for batch in work.batches],
    }


def _typical(seconds: np.ndarray) -> float:
    """Returns the mean over the batches of the median over the rounds, of `[batches, rounds]`."""
    return float(np.median(seconds, 1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="of a training, as JSON")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="gets the figures, as JSON")
    parser.add_argument("--batches", type=int, default=6, help="how many of its batches (default: 6)")
    parser.add_argument("--rounds", type=int, default=5, help="updates with each of them (default: 5)")
    options = parser.parse_args()
    work = real_work(json.loads(options.config.read_text(encoding="utf-8")), options.batches)
    with write_aside(options.to) as file:
        json.dump(measure(work, options.rounds), file, indent=2)


if __name__ == "__main__":
    main()
