"""Finds what matrix products and softmax take of the time of an update; runs in the patched copy of the baseline.

    python -m experiments.time_split --config FILE.json --to FILE.json

Matrix products are operations of their own in a profile, the softmax nearly so. The norms are not: XLA compiles an
update into loops that mix them with what stands beside them. Their time is what the update takes longer than without
them, which `benchmarks/training.py` measures.
"""

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.updates import Work, new_update, real_work, threads, width
from nmt.files import write_aside

from .xla_profile import PROFILED, profile

KINDS = ("none", "layernorm", "rmsnorm")


def measure(work: Work, rounds: int) -> dict[str, Any]:
    """Returns the shares of the parts in the time of updates.

    Args:
        work: The batches, each of which stands for as many updates as any other.
        rounds: How often an update with each batch is profiled.

    Returns:
        `shares`, by kind, of `matmul` and `softmax` in the time of a round, the median over the rounds; `threads`, on
        which an operation runs; and the padded `widths` of the batches.
    """
    return {
        "shares": {kind: _shares(new_update(work, kind)[0], work.batches, rounds) for kind in KINDS},
        "threads": threads(),
        "widths": [width(batch) for batch in work.batches],
    }


def _shares(update, batches: list, rounds: int) -> dict[str, float]:
    for batch in batches:
        update(batch)  # is compiled
    found = []
    for _ in range(rounds):
        profiles = [profile(lambda batch=batch: update(batch)) for batch in batches]
        total = sum(seconds for seconds, _ in profiles)
        found.append({part: sum(spent[part] for _, spent in profiles) / total for part in PROFILED})
    return {part: median(each[part] for each in found) for part in PROFILED}


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
