"""Measures the peak memory of a step of `model.fit` with our layer, Keras's and LayerNorm.

    python benchmarks/memory.py --json benchmarks/results/memory.json

The model is that of `fit.py` with 1024 units, a batch 64 sequences of 64 vectors. A figure is the
peak of the resident memory during three steps over that before the first, so it has the optimizer's
state and what the backward pass keeps. Each is measured in a process of its own.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
from fit import MODES, step
from runner import parser_of, write_log
from tables import KERAS, LAYERNORM, NONE, OURS

from rmsnorm_tf import RMSNormalization

NORMS = {
    OURS: RMSNormalization,
    KERAS: keras.layers.RMSNormalization,
    LAYERNORM: keras.layers.LayerNormalization,
    NONE: keras.layers.Identity,
}
MEBIBYTE = 2**20


def resident(field: str) -> int:
    """Returns a field of this process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024


def peak(name: str, mode: str) -> float:
    """Returns by how many MiB memory grows at the peak of three steps."""
    call = step(NORMS[name], 1024, mode)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    for _ in range(3):
        call()
    return (resident("VmHWM") - before) / MEBIBYTE


def main() -> None:
    parser = parser_of(__doc__, modes=list(MODES), processes=3)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(peak(*options.worker)))
        return
    figures: dict[str, dict[str, list[float]]] = {}
    for mode in options.modes:
        figures[mode] = {}
        for name in NORMS:
            command = [sys.executable, __file__, "--worker", name, mode]
            found = [
                json.loads(subprocess.check_output(command).splitlines()[-1])
                for _ in range(options.processes)
            ]
            figures[mode][name] = found
            print(f"{mode}, {name}: {median(found):.0f} MiB", flush=True)
    write_log(options.json, "memory", options={"units": 1024}, figures=figures)


if __name__ == "__main__":
    main()
