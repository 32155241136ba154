"""Starts real Nematus in a process that updates a model on request."""

import os
import subprocess
import sys

import numpy as np
from updates import ROOT


def nematus_worker(batches, options, model_options, kind, folder):
    """Starts real Nematus. Returns a function that sends it a line and returns the number it answers."""
    path = f"{folder}/batches.npz"
    np.savez(path, **{f"{i}_{j}": array for i, batch in enumerate(batches) for j, array in enumerate(batch)})
    given = {"n_words_src": options.vocabulary, "n_words": options.vocabulary, "batch_size": options.batch_size}
    words = [word for name, value in {**given, **model_options}.items() for word in spelled(name, value)]
    if options.model_type == "transformer":
        words += ["--layer_normalisation_type", kind]
    elif kind == "layernorm":
        words += ["--use_layer_norm"]
    worker = [os.environ["NEMATUS_PYTHON"], str(ROOT / "benchmarks" / "nematus_worker.py"), os.environ["NEMATUS"], path]
    environment = {name: value for name, value in os.environ.items() if name != "TF2_BEHAVIOR"}
    process = subprocess.Popen(
        [*worker, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    if process.stdout.readline() != "ready\n":
        sys.exit(f"training.py: this command fails; run it to see why: {' '.join(process.args)}")

    def ask(line):
        process.stdin.write(f"{line}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    return ask


def spelled(name, value):
    """Returns an option as words of a command."""
    return [f"--{name}"] if value is True else [f"--{name}", str(value)]
