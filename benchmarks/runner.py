"""Times calls in turn, runs processes that answer requests, and writes logs of figures."""

import argparse
import contextlib
import datetime
import importlib.metadata
import itertools
import json
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
Name = TypeVar("Name")
# Instructions for matrix products.
_INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
_LIBRARIES = ("tensorflow", "keras", "numpy", "jax", "torch")


def orders(names: Iterable[Name]) -> Iterator[list[Name]]:
    """Yields random orders of the names; the sequence is the same in every run.

    Each call then follows each other call about equally often, so all of them find the CPU caches
    in the same states.
    """
    generator = random.Random(0)
    names = list(names)
    while True:
        yield generator.sample(names, len(names))


def seconds_of(
    calls: Mapping[Name, Callable[[], object]], rounds: int, seconds_per_turn: float = 0.0
) -> dict[Name, list[float]]:
    """Returns the seconds of each call in each round, after two rounds of warm-up.

    The calls take turns, so that other load on the machine affects all of them equally.

    Args:
        calls: The calls by name.
        rounds: The number of rounds.
        seconds_per_turn: A shorter call is repeated within its turn, and its mean counts.
    """
    repeats = dict.fromkeys(calls, 1)
    if seconds_per_turn:
        repeats = {name: repeats_of(call, seconds_per_turn) for name, call in calls.items()}
    seconds: dict[Name, list[float]] = {name: [] for name in calls}
    for number, order in enumerate(itertools.islice(orders(calls), rounds + 2)):
        for name in order:
            taken = turn(calls[name], repeats[name])
            if number >= 2:
                seconds[name].append(taken)
    return seconds


def updates_in_turn(
    calls: Mapping[Name, Callable[[int], float]], batches: int, rounds: int
) -> tuple[dict[Name, list[float]], dict[Name, float]]:
    """Returns the seconds of an update in each round, and of the slowest first update.

    A call makes an update with the batch of a number and returns its seconds. A round has an update
    with each batch.
    """
    first = {name: max(map(call, range(batches))) for name, call in calls.items()}
    seconds: dict[Name, list[float]] = {name: [0.0] * rounds for name in calls}
    for number, order in enumerate(itertools.islice(orders(calls), rounds * batches)):
        for name in order:
            seconds[name][number // batches] += calls[name](number % batches) / batches
    return seconds, first


def repeats_of(call: Callable[[], object], seconds_per_turn: float) -> int:
    """Returns how often to repeat a call in a turn, after calls that let it compile."""
    taken = [turn(call, 1) for _ in range(4)]
    return max(1, int(seconds_per_turn / taken[-1]))


def turn(call: Callable[[], object], repeats: int) -> float:
    """Returns the mean seconds of a call that is repeated."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """Returns the median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def noise(again: Sequence[float], base: Sequence[float]) -> float:
    """Returns how far two measurements of the same thing differ.

    That is the distance of the median ratio from 1 or, if that is more, half the range of the
    middle half of the ratios.
    """
    ratios = [a / b for a, b in zip(again, base, strict=True)]
    if len(ratios) == 1:
        return abs(ratios[0] - 1)
    below, middle, above = statistics.quantiles(ratios, method="inclusive")
    return max(abs(middle - 1), (above - below) / 2)


class Worker:
    """A process that answers requests, which `answer` reads there; both are lines of JSON."""

    def __init__(self, command: Sequence[object], **options: Any):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(list(map(str, command)), **pipes, **options)

    def ask(self, request: Any) -> Any:
        """Returns the answer to a request; raises RuntimeError if the process has ended."""
        self.send(request)
        return self.receive()

    def send(self, request: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=self.process.stdin, flush=True)

    def receive(self) -> Any:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process has ended: {' '.join(self.process.args)}")
        return json.loads(line)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def answer(function: Callable[[Any], Any]) -> None:
    """Answers the requests on standard input with what a function returns.

    What libraries print goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(function(json.loads(line))), file=answers, flush=True)


def parser_of(doc: str, **defaults: Any) -> argparse.ArgumentParser:
    """Returns the parser of a script, with `--json` and an option for each default.

    A default is a number, or a list of choices.
    """
    form = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(description=doc.splitlines()[0], formatter_class=form)
    for name, default in defaults.items():
        if isinstance(default, (int, float)):
            parser.add_argument(f"--{name}", type=type(default), default=default)
        else:
            parser.add_argument(f"--{name}", nargs="+", default=default, choices=default)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    return parser


def machine() -> dict[str, Any]:
    """Returns the processor, its cores and its instructions for matrix products."""
    described = Path("/proc/cpuinfo")
    text = described.read_text() if described.exists() else ""
    values = dict(re.findall(r"^(.*?)\s*: (.*)$", text, re.MULTILINE))
    flags = values.get("flags", "").split()
    return {
        "processor": values.get("model name", platform.processor()),
        "cores": os.cpu_count(),
        "instructions": [each for each in _INSTRUCTIONS if each in flags],
    }


def surroundings() -> dict[str, Any]:
    """Returns the machine, the versions of the loaded libraries, the commit and the date."""
    loaded = sys.modules.keys() & set(_LIBRARIES)
    versions = {name: importlib.metadata.version(name) for name in sorted(loaded)}
    today = datetime.date.today().isoformat()
    return {"machine": machine(), "versions": versions, "commit": _commit(), "date": today}


def _commit() -> str:
    """Returns the commit of the checkout, or an empty string without one."""
    describe = ["describe", "--always", "--dirty=+", "--exclude=*", "--abbrev=12"]
    command = ["git", "-C", str(ROOT), *describe]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def write_log(path: Path | None, benchmark: str, **found: Any) -> None:
    """Writes what a script found to a file, if one is named."""
    if path is None:
        return
    found = {"benchmark": benchmark, **surroundings(), **found}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_readable(found) + "\n", encoding="utf-8")


def _readable(found: Any) -> str:
    """Returns JSON with a line for each list of numbers."""
    numbers = r"\[\s+([-+\de.,\s]+?)\s+\]"
    text = json.dumps(found, indent=1)
    return re.sub(numbers, lambda match: f"[{' '.join(match[1].split())}]", text)
