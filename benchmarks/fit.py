"""Times a step of `model.fit` of residual layers with our layer, Keras's, LayerNorm and no norm, and prints a table.

    python benchmarks/fit.py --json benchmarks/results/fit.json
    python benchmarks/fit.py --units 64 --modes default
    python benchmarks/tables.py benchmarks/results/fit.json --png docs/fit.png

A model is a stack of `x + Dense(units, "relu")(norm(x))`; a batch has 64 sequences of 64 vectors, and Adam updates.
The modes are options of `compile`. With none, Keras runs a `tf.function`, and compiles it by XLA only where there is a
GPU. Each of several processes measures everything, because ratios differ between processes more than within one. A
second model with Keras's layer shows the noise. Real-time priority makes steps slower for seconds at a time, because
threads that wait actively are then never interrupted.
"""

import argparse
import collections
import functools
import itertools
import json
import os
import sys
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from runner import Worker, answer, parser_of, ratio, seconds_of, write_log

layers = keras.layers
DEPTHS = {64: 6, 256: 6, 512: 4, 1024: 2}  # layers by units
MODES = {"default": {}, "jit_compile=True": {"jit_compile": True}, "run_eagerly=True": {"run_eagerly": True}}
STEPS = {64: 20, 256: 6, 512: 3, 1024: 2}  # of a call of `fit`, whose start takes as long as a step or two
BATCH = TIME = 64
OURS, KERAS, AGAIN = "rmsnorm_tf", "keras RMSNormalization", "keras RMSNormalization, again"
NORMS = {"no norm": layers.Identity, KERAS: layers.RMSNormalization, AGAIN: layers.RMSNormalization}
NORMS["keras LayerNormalization"] = layers.LayerNormalization


def residual(norm: Callable[[], layers.Layer], units: int) -> keras.Model:
    """Returns a model of residual layers with a norm each, and one at the end."""
    x = start = keras.Input((TIME, units))
    for _ in range(DEPTHS[units]):
        x = x + layers.Dense(units, activation="relu")(norm()(x))
    return keras.Model(start, layers.Dense(1)(norm()(x)))


def steps(norm: Callable[[], layers.Layer], units: int, mode: str) -> Callable[[], object]:
    """Returns a function that calls `fit`."""
    keras.utils.set_random_seed(0)
    model = residual(norm, units)
    model.compile(keras.optimizers.Adam(1e-3), "mse", **MODES[mode])
    x = np.random.default_rng(0).normal(size=(STEPS[units] * BATCH, TIME, units)).astype("float32")
    return functools.partial(model.fit, x, x[..., :1], batch_size=BATCH, shuffle=False, verbose=0)


def measure(units: int, mode: str, rounds: int) -> dict[str, list[float]]:
    """Returns the seconds of a step in each round, by norm; LayerNorm and none only in the default mode."""
    from rmsnorm_tf import RMSNormalization

    norms = {OURS: RMSNormalization, **NORMS}
    if mode != "default":
        norms = {name: norms[name] for name in (OURS, KERAS, AGAIN)}
    calls = {name: steps(norm, units, mode) for name, norm in norms.items()}
    return {name: [each / STEPS[units] for each in found] for name, found in seconds_of(calls, rounds).items()}


def main() -> None:
    parser = parser_of(__doc__, modes=list(MODES), processes=3, rounds=2)
    parser.add_argument("--units", nargs="+", type=int, default=list(DEPTHS), choices=DEPTHS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        answer(lambda asked: measure(*asked))
        return
    old = options.json is not None and options.json.is_file()  # gets the new figures besides its own
    figures: dict[str, dict] = json.loads(options.json.read_text())["figures"] if old else {}
    cells = list(itertools.product(map(str, options.units), options.modes))
    for units, mode in cells:
        figures.setdefault(units, {})[mode] = collections.defaultdict(list)
    for _ in range(options.processes):
        with Worker([sys.executable, __file__, "--worker"]) as worker:
            for units, mode in cells:
                found = worker.ask([int(units), mode, options.rounds])
                for name, seconds in found.items():
                    figures[units][mode][name] += seconds
                ratios = [f"{ratio(found[name], found[KERAS]):.2f}" for name in (OURS, AGAIN)]
                print(f"{units} units, {mode}: {ratios[0]} of Keras's time, Keras's again {ratios[1]}", flush=True)
    given = {"rounds": options.rounds, "steps": STEPS, "depths": DEPTHS}
    write_log(options.json, "fit", options=given, figures=figures)


if __name__ == "__main__":
    main()
