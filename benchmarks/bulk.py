"""Measures `python -m nmt.bulk` with one and with two processes of one thread each.

    .venv-bulk/bin/python benchmarks/bulk.py SAVED_MODEL < sentences

Runs in the environment of the extra `bulk`, on two quiet cores. Prints for each number of processes the lines/s while
they translate, the share of their time that they spend in the model, and the lines/s of the whole job, start included.
Each number of processes runs several times, in turn; the median counts.
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
        "lines/s": report["translated"] / translating,
        "model's share": report["model_seconds"] / (processes * translating),
        "lines/s with the start": report["translated"] / seconds,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("export", type=Path, metavar="SAVED_MODEL", help="folder that `python -m nmt export` wrote")
    parser.add_argument("--lines", type=int, default=8000, help="lines of a job (default: 8000)")
    parser.add_argument("--piece_lines", type=int, default=250, help="lines of a piece (default: 250)")
    parser.add_argument("--rounds", type=int, default=3, help="jobs of each number of processes (default: 3)")
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
    names = list(found[1][0])
    middle = {n: {name: statistics.median(job[name] for job in jobs) for name in names} for n, jobs in found.items()}
    print(f"| processes | {' | '.join(names)} | share of Beam, reading and writing |\n|{'---|' * (len(names) + 2)}")
    for processes, values in middle.items():
        share = values["model's share"]
        cells = (values["lines/s"], f"{share:.3f}", values["lines/s with the start"], f"{1 - share:.3f}")
        print(f"| {processes} | {' | '.join(c if isinstance(c, str) else f'{c:.1f}' for c in cells)} |")
    print(f"\ntwo processes reach {middle[2]['lines/s'] / middle[1]['lines/s']:.2f} times the lines/s of one")


if __name__ == "__main__":
    main()
