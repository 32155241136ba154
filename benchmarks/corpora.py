"""Measures what a large training text costs and prints a table.

    python benchmarks/corpora.py --pairs 10000 10000000     # needs 2 GB in --to for ten million pairs
    python benchmarks/corpora.py --json CORPORA.json        # for tables.py

For each number of pairs it makes a text of short lines with made-up words, and a vocabulary of a sample. Then it runs
`nmt prepare` twice, with an empty cache and with the cache that the first run has left, and `nmt train` with a small
RNN. Seconds are those of whole processes, the import of TensorFlow included. Memory is the peak of the process, the
pages of mapped files included. Words a second are those that `train` reports, target words without compilations.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from figures_log import write_log

ROOT = Path(__file__).parents[1]
STEPS = ("vocab", "prepare, first", "prepare, second", "train")
HEADS = [
    "pairs",
    "text, MiB",
    "cache, MiB",
    *(f"{step}: {unit}" for step in STEPS for unit in ("s", "MiB")),
    "tokens/s",
]
BLOCK = 100_000  # lines that are made at a time
SYLLABLES = ["ka", "to", "ri", "men", "sol", "ba", "che", "du", "lin", "qua", "ves", "por", "tin", "gra", "mo", "ze"]
TRAIN = "--model_type rnn --embedding_size 64 --state_size 128 --layer_normalization_type layernorm --batch_size 80"


def write_text(path: Path, lines: int, seed: int) -> None:
    """Writes lines of two to seven made-up words."""
    generator = np.random.default_rng(seed)
    words = made_of(SYLLABLES, generator, 5000, "", 4)
    starts = made_of(words, generator, BLOCK, " ", 6)
    with path.open("w") as file:
        for done in range(0, lines, BLOCK):
            count = min(BLOCK, lines - done)
            pairs = zip(generator.integers(BLOCK, size=count), generator.integers(len(words), size=count), strict=True)
            file.writelines(f"{starts[start]} {words[word]}\n" for start, word in pairs)


def made_of(parts: list[str], generator: np.random.Generator, count: int, joint: str, most: int) -> list[str]:
    """Returns strings of one to `most` random parts."""
    chosen = generator.integers(len(parts), size=(count, most))
    lengths = generator.integers(1, most + 1, size=count)
    return [joint.join(parts[i] for i in row[:length]) for row, length in zip(chosen, lengths, strict=True)]


def run(command: str, directory: Path) -> tuple[float, float, str]:
    """Runs a command of nmt. Returns its seconds, its peak memory in MiB and its standard error."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NMT_TEXT_CACHE": str(directory / "cache"),
        "TQDM_MININTERVAL": "1",
    }
    begun = time.monotonic()
    with (directory / "printed").open("w") as printed:
        words = [sys.executable, "-m", "nmt", *command.split()]
        process = subprocess.Popen(words, cwd=directory, env=environment, stderr=printed)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    said = (directory / "printed").read_text()
    if process.returncode:
        raise SystemExit(f"nmt {command}: {said}")
    return time.monotonic() - begun, usage.ru_maxrss / 1024, said


def measure(pairs: int, updates: int, directory: Path) -> dict[str, float]:
    """Returns the figures of a text of this many pairs by the heads of their columns."""
    for seed, name in enumerate(("train.en", "train.de", "dev.en", "dev.de")):
        write_text(directory / name, pairs if name.startswith("train") else 100, seed % 2)
    size = sum((directory / f"train.{side}").stat().st_size for side in ("en", "de")) / 2**20
    texts = "--source_dataset train.en --target_dataset train.de"
    vocabulary = run(f"vocab {texts} --to vocab --size 1000 --sample_lines 10000", directory)
    texts += " --dictionaries vocab/source.model vocab/target.model"
    first, second = (run(f"prepare {texts}", directory) for _ in range(2))
    valid = "--valid_source_dataset dev.en --valid_target_dataset dev.de"
    training = run(f"train -m model {texts} {valid} {TRAIN} --finish_after {updates}", directory)
    speed = re.findall(r"(\d+) tokens/s", training[2])[-1]
    cache = sum(path.stat().st_size for path in (directory / "cache").rglob("*")) / 2**20
    columns = [pairs, size, cache]
    columns += [value for seconds, memory, _ in (vocabulary, first, second, training) for value in (seconds, memory)]
    return dict(zip(HEADS, [*columns, int(speed)], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[10_000, 10_000_000])
    parser.add_argument("--updates", type=int, default=300, help="of each training (default: 300)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    parser.add_argument("--to", type=Path, help="texts are here until they are measured (default: temporary)")
    arguments = parser.parse_args()
    print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}", flush=True)
    figures = []
    for pairs in arguments.pairs:
        directory = Path(tempfile.mkdtemp(prefix="corpora-", dir=arguments.to))
        try:
            figures.append(measure(pairs, arguments.updates, directory))
            print(f"| {' | '.join(f'{value:,.0f}' for value in figures[-1].values())} |", flush=True)
        finally:
            shutil.rmtree(directory)
    if arguments.json:
        write_log(arguments.json, "corpora", {"updates": arguments.updates}, figures)


if __name__ == "__main__":
    main()
