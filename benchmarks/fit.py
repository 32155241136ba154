"""Times a step of `model.fit` of residual layers with our layer, Keras's, LayerNorm and no norm,
and prints a table.

    python benchmarks/fit.py --json benchmarks/results/fit.json
    python benchmarks/fit.py --units 64 --modes default
    python benchmarks/tables.py benchmarks/results/fit.json --png docs/fit.png

A model is a stack of `x + Dense(units, "relu")(norm(x))`; a batch has 64 sequences of 64 vectors,
and Adam updates. A step is what `fit` runs for each batch, called by `train_on_batch`. The modes
are options of `compile`. With none, Keras runs a `tf.function`, and compiles it by XLA only where
there is a GPU.

A shared machine is faster and slower by turns of seconds. So a turn is one step, there are many
rounds, and each of several processes measures everything. A second model with Keras's layer shows
the noise.
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
from tables import AGAIN, KERAS, LAYERNORM, NONE, OURS

DEPTHS = {64: 6, 256: 6, 512: 4, 1024: 2}  # layers by units
MODES = {
    "default": {},
    "jit_compile=True": {"jit_compile": True},
    "run_eagerly=True": {"run_eagerly": True},
}
ROUNDS = {64: 60, 256: 24, 512: 12, 1024: 8}  # in a process
BATCH = TIME = 64
NORMS = {
    NONE: keras.layers.Identity,
    KERAS: keras.layers.RMSNormalization,
    AGAIN: keras.layers.RMSNormalization,
    LAYERNORM: keras.layers.LayerNormalization,
}


def residual(norm: Callable[[], keras.layers.Layer], units: int) -> keras.Model:
    """Returns a model of residual layers with a norm each, and one at the end."""
    x = start = keras.Input((TIME, units))
    for _ in range(DEPTHS[units]):
        x = x + keras.layers.Dense(units, activation="relu")(norm()(x))
    return keras.Model(start, keras.layers.Dense(1)(norm()(x)))


def step(norm: Callable[[], keras.layers.Layer], units: int, mode: str) -> Callable[[], object]:
    """Returns a function that makes a step of training."""
    keras.utils.set_random_seed(0)
    model = residual(norm, units)
    model.compile(keras.optimizers.Adam(1e-3), "mse", **MODES[mode])
    generator = np.random.default_rng(0)
    x = keras.ops.convert_to_tensor(generator.normal(size=(BATCH, TIME, units)), "float32")
    return functools.partial(model.train_on_batch, x, x[..., :1])


def measure(units: int, mode: str) -> dict[str, list[float]]:
    """Returns the seconds of a step in each round, by norm; two of them by default only."""
    from rmsnorm_tf import RMSNormalization

    norms = {OURS: RMSNormalization, **NORMS}
    if mode != "default":
        norms = {name: norms[name] for name in (OURS, KERAS, AGAIN)}
    calls = {name: step(norm, units, mode) for name, norm in norms.items()}
    return seconds_of(calls, ROUNDS[units])


def main() -> None:
    parser = parser_of(__doc__, modes=list(MODES), processes=3)
    parser.add_argument("--units", nargs="+", type=int, default=list(DEPTHS), choices=DEPTHS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        answer(lambda asked: measure(*asked))
        return
    figures: dict[str, dict] = {}
    if options.json and options.json.is_file():  # keeps what this run does not measure
        figures = json.loads(options.json.read_text())["figures"]
    cells = list(itertools.product(map(str, options.units), options.modes))
    for units, mode in cells:
        figures.setdefault(units, {})[mode] = collections.defaultdict(list)
    for _ in range(options.processes):
        with Worker([sys.executable, __file__, "--worker"]) as worker:
            for units, mode in cells:
                found = worker.ask([int(units), mode])
                for name, seconds in found.items():
                    figures[units][mode][name] += seconds
                over = {name: round(ratio(found[name], found[KERAS]), 2) for name in (OURS, AGAIN)}
                print(f"{units} units, {mode}, over Keras: {over}", flush=True)
    write_log(options.json, "fit", options={"rounds": ROUNDS, "depths": DEPTHS}, figures=figures)


if __name__ == "__main__":
    main()
