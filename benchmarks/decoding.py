"""Times translation, beam 5, and prints sentences per second and the latency of one sentence; asserts nothing.

    python benchmarks/decoding.py --model DIR --input TEXT
    NEMATUS=/path/to/v0.3 NEMATUS_PYTHON=/path/to/its/python python benchmarks/decoding.py \\
        --model DIR --input TEXT --checkpoint MODEL

DIR is a model directory, with a checkpoint that of `python -m nmt import-nematus MODEL --to DIR`. `python -m nmt
translate` and Nematus's own translate.py, one process, translate the text in turn, as whole commands; from the time
of each that of the same command on the first line alone is taken, which is the start. The latency is that of one line
in a process that stays.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
BEAM = 5


def commands(options):
    """Returns the command of each implementation, to which input and output are added."""
    ours = [sys.executable, "-m", "nmt", "translate", "-m", Path(options.model).resolve()]
    found = {"ours": ours}
    if options.checkpoint:
        script = Path(os.environ["NEMATUS"], "nematus", "translate.py").resolve()
        found["Nematus v0.3"] = [
            os.environ["NEMATUS_PYTHON"],
            "-B",
            script,
            "-m",
            Path(options.checkpoint).name,
            "-p",
            "1",
        ]
    return {name: [*map(str, command), "-k", str(BEAM), "-n"] for name, command in found.items()}


def run(command, source, target, folder):
    """Returns the seconds that a command takes to translate a file; it runs where Nematus finds its dictionaries."""
    environment = {name: value for name, value in os.environ.items() if name != "TF2_BEHAVIOR"}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    start = time.perf_counter()
    command = [*command, "-i", source, "-o", target]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if ended.returncode:
        print(f"decoding.py: {' '.join(map(str, command))} failed:\n{ended.stderr[-1000:]}", file=sys.stderr)
        sys.exit(2)
    return time.perf_counter() - start


def throughput(options, folder):
    """Prints the sentences per second of each implementation, a line each round."""
    text = Path(options.input).read_text(encoding="utf-8")
    one, whole = Path(folder, "one"), Path(folder, "whole")
    one.write_text(text.partition("\n")[0] + "\n", encoding="utf-8")
    whole.write_text(text, encoding="utf-8")
    sentences = text.count("\n")
    beside = Path(options.checkpoint or options.model).resolve().parent
    speeds = {name: [] for name in commands(options)}
    for _ in range(options.rounds):
        for name, command in commands(options).items():
            start = run(command, one, Path(folder, "out"), beside)
            speeds[name].append((sentences - 1) / (run(command, whole, Path(folder, "out"), beside) - start))
    for name, found in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(found, list(speeds.values())[-1], strict=True))
        print(f"{name:14}{statistics.median(found):8.1f} sentences/s   {ratio:.2f} of {list(speeds)[-1]}")


def latency(options):
    """Prints the time that one sentence takes, one at a time."""
    from nmt.system import load_system

    translator = load_system(Path(options.model)).translator(BEAM, 1.0)
    lines = Path(options.input).read_bytes().splitlines()[: options.lines]
    translator.best(lines[:1])
    seconds = []
    for line in lines:
        start = time.perf_counter()
        translator.best([line])
        seconds.append(time.perf_counter() - start)
    seconds.sort()
    print(
        f"one sentence: median {seconds[len(seconds) // 2]:.3f} s, 95% within {seconds[len(seconds) * 95 // 100]:.3f} s"
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--model", required=True, help="model directory")
    parser.add_argument("--input", required=True, help="text to translate")
    parser.add_argument("--checkpoint", help="the Nematus checkpoint that was imported")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", type=int, default=100, help="sentences for the latency")
    options = parser.parse_args()
    if not Path(options.input).is_file():
        parser.error(f"there is no text {options.input}")
    if options.checkpoint and not {"NEMATUS", "NEMATUS_PYTHON"} <= set(os.environ):
        parser.error("--checkpoint needs NEMATUS, the checkout, and NEMATUS_PYTHON, the Python to run it with")
    with tempfile.TemporaryDirectory() as folder:
        throughput(options, folder)
    latency(options)


if __name__ == "__main__":
    main()
