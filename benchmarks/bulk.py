"""Measures `python -m nmt.bulk` with one and with two processes of one thread each.

    .venv-bulk/bin/python benchmarks/bulk.py SAVED_MODEL < sentences
    .venv-bulk/bin/python benchmarks/bulk.py SAVED_MODEL --json FIGURES.json < sentences

Runs in the environment of the extra `bulk`, on two quiet cores. Prints for each number of processes the lines/s while
they translate, the share of their time that they spend in the model, and the lines/s of the whole job, start included.
Each number of processes runs several times, in turn; the median counts.

--json writes the same figures:

    versions    of tensorflow and apache-beam
    cores       of the machine
    options     lines of a job and of a piece, and rounds
    processes   by number of processes:
        rounds      speed, share and speed_with_start of each job; the i-th rounds of all numbers were interleaved
        speed, share, speed_with_start      their medians
    speedup     ratio of the speeds of two processes and one
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROCESSES = (1, 2)
SHARDS = 4
ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "OMP_NUM_THREADS": "1"}


def write_shards(folder, lines, count):
    """Writes `count` lines in files; the lines that there are take turns."""
    folder.mkdir()
    repeated = itertools.islice(itertools.cycle(lines), count)
    for number in range(SHARDS):
        own = itertools.islice(repeated, count // SHARDS)
        (folder / f"{number}.txt").write_bytes(b"".join(own))


def measure(export, texts, output, processes, piece_lines):
    """Returns the figures of one job."""
    command = [sys.executable, "-m", "nmt.bulk", "--export", export, "--input", f"{texts}/*.txt", "--output", output]
    command += ["--piece_lines", str(piece_lines), "--direct_num_workers", str(processes)]
    command += ["--direct_running_mode", "multi_processing"]
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)}
    start = time.monotonic()
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - start
    report = json.loads((output / "_bulk" / "report.json").read_text())
    translating = report["ended"] - report["began"]
    return {
        "speed": report["translated"] / translating,
        "share": report["model_seconds"] / (processes * translating),
        "speed_with_start": report["translated"] / seconds,
    }


def summary(rounds):
    """Returns the figures of a number of processes from those of its jobs."""
    columns = {name: [job[name] for job in rounds] for name in rounds[0]}
    return {"rounds": columns, **{name: statistics.median(values) for name, values in columns.items()}}


def table(processes):
    """Returns the table of docs/bulk.md, in lines."""
    heads = ["processes", "lines/s", "the model's share", "lines/s with the start"]
    heads.append("share of Beam, reading and writing")
    rows = [
        f"| {number} | {each['speed']:.1f} | {each['share']:.1%} | {each['speed_with_start']:.1f} "
        f"| {1 - each['share']:.1%} |"
        for number, each in processes.items()
    ]
    return [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export", type=Path, metavar="SAVED_MODEL", help="folder that `python -m nmt export` wrote")
    parser.add_argument("--lines", type=int, default=8000, help="lines of a job (default: 8000)")
    parser.add_argument("--piece_lines", type=int, default=250, help="lines of a piece (default: 250)")
    parser.add_argument("--rounds", type=int, default=3, help="jobs of each number of processes (default: 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    lines = [line if line.endswith(b"\n") else line + b"\n" for line in sys.stdin.buffer]
    found = {processes: [] for processes in PROCESSES}
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder, "texts")
        write_shards(texts, lines, options.lines)
        for number in range(options.rounds):
            for processes in PROCESSES:
                output = Path(folder, f"{processes}-{number}")
                found[processes].append(measure(options.export, texts, output, processes, options.piece_lines))
    processes = {number: summary(rounds) for number, rounds in found.items()}
    measured = {
        "versions": {name: version(name) for name in ("tensorflow", "apache-beam")},
        "cores": os.cpu_count(),
        "options": {name: getattr(options, name) for name in ("lines", "piece_lines", "rounds")},
        "processes": processes,
        "speedup": processes[2]["speed"] / processes[1]["speed"],
    }
    print("\n".join(table(processes)))
    print(f"\nTwo processes reach {measured['speedup']:.2f} times the lines/s of one.")
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
