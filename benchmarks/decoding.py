"""Measures translation with beam size 5: sentences per second, the latency of one sentence, the memory of the caches.

    python benchmarks/decoding.py --model DIR --input TEXT
    NEMATUS=/path/to/nematus NEMATUS_PYTHON=/path/to/its/python python benchmarks/decoding.py \\
        --model DIR --input TEXT --checkpoint MODEL --json DECODING.json    # for tables.py

DIR is the directory of a model of any type. For a comparison with real Nematus, v0.3 to master, MODEL is the checkpoint
from which `python -m nmt import-nematus MODEL --to DIR` made it.

Throughput: `python -m nmt translate` and Nematus's translate.py, with one process, translate the text in turn. The time
of the same command for the first line alone is subtracted, to exclude the start-up. Latency: the time for one line in a
process that has loaded the model. Caches: the tensors that decoding keeps for a batch of the longest lines when the
translations are as long as the lines.
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
BATCH = 80  # sentences, as both commands translate at a time


def commands(options):
    """Returns the command of each implementation, without input and output."""
    ours = [sys.executable, "-m", "nmt", "translate", "-m", Path(options.model).resolve()]
    implementations = {"ours": ours}
    if options.checkpoint:
        script = Path(os.environ["NEMATUS"], "nematus", "translate.py").resolve()
        python = [os.environ["NEMATUS_PYTHON"], "-B"]
        one_process = [] if script.with_name("train.py").exists() else ["-p", "1"]  # an option of v0.3 alone
        implementations["Nematus"] = [*python, script, "-m", Path(options.checkpoint).name, *one_process]
    return {name: [*map(str, command), "-k", str(BEAM), "-n"] for name, command in implementations.items()}


def run(command, source, target, folder):
    """Returns the seconds that a command takes to translate a file. Nematus finds its dictionaries in `folder`."""
    environment = {name: value for name, value in os.environ.items() if name != "TF2_BEHAVIOR"}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    command = [*command, "-i", source, "-o", target]
    start = time.perf_counter()
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if ended.returncode:
        print(f"decoding.py: {' '.join(map(str, command))} failed:\n{ended.stderr[-1000:]}", file=sys.stderr)
        sys.exit(2)
    return time.perf_counter() - start


def throughput(options, folder):
    """Prints and returns the sentences per second of each implementation in each round."""
    text = Path(options.input).read_text(encoding="utf-8")
    one, whole = Path(folder, "one"), Path(folder, "whole")
    one.write_text(text.partition("\n")[0] + "\n", encoding="utf-8")
    whole.write_text(text, encoding="utf-8")
    sentences = text.count("\n")
    parent = Path(options.checkpoint or options.model).resolve().parent
    speeds = {name: [] for name in commands(options)}
    for _ in range(options.rounds):
        for name, command in commands(options).items():
            start = run(command, one, Path(folder, "out"), parent)
            speeds[name].append((sentences - 1) / (run(command, whole, Path(folder, "out"), parent) - start))
    for name, found in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(found, list(speeds.values())[-1], strict=True))
        print(f"{name:14}{statistics.median(found):8.1f} sentences/s   {ratio:.2f} of {list(speeds)[-1]}")
    return speeds


def latency(options, system):
    """Prints the time to translate a single sentence, and returns those of all."""
    from nmt.decoding.options import DecodingOptions

    translator = system.translator(DecodingOptions(beam_size=BEAM))
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
    return seconds


def caches(options, system):
    """Prints and returns the MiB of the memory and of the state of a batch, which the contract of models defines."""
    import tensorflow as tf

    from nmt.text.batches import LONGEST, pad

    lines = sorted(Path(options.input).read_bytes().splitlines(), key=len)[-BATCH:]
    source, mask = pad(system.source_vocabulary.encode(tf.constant(lines))[:, :LONGEST])
    state, memory = system.model.encode(source, mask)
    state = tf.nest.map_structure(lambda x: tf.repeat(x, BEAM, axis=0), state)
    step = system.model.make_step()
    for _ in range(source.shape[1]):
        _, state, memory = step(tf.zeros([len(lines) * BEAM], tf.int32), state, memory)
    sizes = [
        sum(x.dtype.size * x.shape.num_elements() for x in tf.nest.flatten(part)) / 2**20 for part in (memory, state)
    ]
    print(f"caches of {len(lines)} sentences of {source.shape[1]} tokens: {sizes[0]:.1f} MiB of the source, ", end="")
    print(f"{sizes[1]:.1f} MiB of {BEAM} translations each")
    return dict(zip(("memory", "state"), sizes, strict=True))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--model", required=True, help="model directory")
    parser.add_argument("--input", required=True, help="text to translate")
    parser.add_argument("--checkpoint", help="the Nematus checkpoint that --model was imported from")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", type=int, default=100, help="number of sentences to measure the latency with")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    if not Path(options.input).is_file():
        parser.error(f"--input {options.input} does not exist; give a text file")
    if options.checkpoint and not {"NEMATUS", "NEMATUS_PYTHON"} <= set(os.environ):
        parser.error("--checkpoint needs NEMATUS (a checkout) and NEMATUS_PYTHON (its interpreter) in the environment")
    with tempfile.TemporaryDirectory() as folder:
        speeds = throughput(options, folder)
    from nmt.system import load_system

    system = load_system(Path(options.model))
    figures = {"speeds": speeds, "latency": latency(options, system), "caches": caches(options, system)}
    if options.json:
        from figures_log import model_facts, write_log

        given = {"sentences": Path(options.input).read_bytes().count(b"\n"), "rounds": options.rounds}
        write_log(options.json, "decoding", {**model_facts(system.config), **given}, figures)


if __name__ == "__main__":
    main()
