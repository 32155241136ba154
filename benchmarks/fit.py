"""Times a step of `model.fit` of residual layers with our layer, Keras's, LayerNorm and no norm, and prints a table.

    python benchmarks/fit.py --json benchmarks/results/fit.json
    python benchmarks/fit.py --units 64 --modes default --real_time
    python benchmarks/tables.py benchmarks/results/fit.json --png docs/fit.png

A model is a stack of `x + Dense(units, "relu")(norm(x))`; a batch has 64 sequences of 64 vectors, and Adam updates.
The modes are options of `compile`. With none, Keras runs a `tf.function`, and compiles it by XLA only where there is a
GPU. A second model with Keras's layer shows the noise.
"""

import functools
import itertools
import json
import os
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from runner import noise, parser_of, ratio, real_time, seconds_of, write_log

layers = keras.layers
DEPTHS = {64: 6, 256: 6, 512: 4, 1024: 2}  # layers by units
MODES = {"default": {}, "jit_compile=True": {"jit_compile": True}, "run_eagerly=True": {"run_eagerly": True}}
STEPS = 5  # of a call of `fit`
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
    """Returns a function that makes STEPS steps of training."""
    keras.utils.set_random_seed(0)
    model = residual(norm, units)
    model.compile(keras.optimizers.Adam(1e-3), "mse", **MODES[mode])
    x = np.random.default_rng(0).normal(size=(STEPS * BATCH, TIME, units)).astype("float32")
    return functools.partial(model.fit, x, x[..., :1], batch_size=BATCH, shuffle=False, verbose=0)


def measure(units: int, mode: str, rounds: int) -> dict[str, list[float]]:
    """Returns the seconds of a step in each round, by norm; LayerNorm and none only in the default mode."""
    from rmsnorm_tf import RMSNormalization

    norms = {OURS: RMSNormalization, **NORMS}
    if mode != "default":
        norms = {name: norms[name] for name in (OURS, KERAS, AGAIN)}
    calls = {name: steps(norm, units, mode) for name, norm in norms.items()}
    return {name: [each / STEPS for each in found] for name, found in seconds_of(calls, rounds).items()}


def main() -> None:
    parser = parser_of(__doc__, modes=list(MODES), rounds=7)
    parser.add_argument("--units", nargs="+", type=int, default=list(DEPTHS), choices=DEPTHS)
    parser.add_argument("--real_time", action="store_true", help="take real-time priority, which needs root")
    options = parser.parse_args()
    if options.real_time:
        real_time()
    old = options.json is not None and options.json.is_file()  # gets the new figures besides its own
    figures: dict[str, dict] = json.loads(options.json.read_text())["figures"] if old else {}
    for units, mode in itertools.product(options.units, options.modes):
        found = measure(units, mode, options.rounds)
        figures.setdefault(str(units), {})[mode] = found
        line = f"{ratio(found[OURS], found[KERAS]):.2f} of Keras's time, noise {noise(found[AGAIN], found[KERAS]):.2f}"
        print(f"{units} units, {mode}: {line}", flush=True)
        given = {"rounds": options.rounds, "steps": STEPS, "depths": DEPTHS}
        write_log(options.json, "fit", options=given, figures=figures)


if __name__ == "__main__":
    main()
