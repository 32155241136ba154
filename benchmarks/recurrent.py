"""Times a training step of a one-layer GRU with each kind of normalization inside.

    python benchmarks/recurrent.py                          # takes some minutes
    python benchmarks/recurrent.py --units 256 --modes xla
    python benchmarks/recurrent.py --json RECURRENT.json    # for tables.py

In each mode, all layers run in turn for many rounds, so that other load on the machine affects all of them equally.

Columns: median milliseconds; the ratio to keras.layers.GRU (median of the rounds' ratios); the milliseconds that the
normalization adds (median of the rounds' differences to no normalization); and the ratio of these to LayerNorm's.
"""

import argparse
import operator
import os
import statistics

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from runner import seconds_of, write_log

from rmsnorm_tf import RMSNormGRU

MODES = ["graph", "xla"]


def layers(units):
    """Returns all layers by name. Keras's GRU shows what our layer costs without normalization."""
    arguments = {"units": units, "return_sequences": True}
    return {
        "keras GRU": keras.layers.GRU(**arguments),
        "none": RMSNormGRU(normalization=None, **arguments),
        "layer": RMSNormGRU(normalization="layer", **arguments),
        "rms": RMSNormGRU(**arguments),
        "partial rms": RMSNormGRU(partial=0.0625, **arguments),
    }


def training_step(layer, x, jit_compile):
    """Returns a function that updates the layer once."""
    layer.build(x.shape)
    optimizer = keras.optimizers.SGD(1e-6)
    optimizer.build(layer.trainable_variables)

    @tf.function(jit_compile=jit_compile)
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layer(x, training=True)))
        optimizer.apply(tape.gradient(loss, layer.trainable_variables), layer.trainable_variables)
        return loss

    return lambda: step().numpy()


def median_of(operation, seconds, others):
    """Returns the median over the rounds of `operation(time of one call, time of the other)`."""
    return statistics.median(map(operation, seconds, others))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--units", type=int, default=1024)
    parser.add_argument("--inputs", type=int, default=512)
    parser.add_argument("--batch", type=int, default=80)
    parser.add_argument("--time", type=int, default=50)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()

    print(f"tensorflow {tf.__version__}, keras {keras.__version__}, {os.cpu_count()} cores")
    print(f"{'':30}{'ms':>10}{'/ Keras':>10}{'over none':>12}{'/ layer':>10}")
    shape = (options.batch, options.time, options.inputs)
    x = tf.constant(np.random.default_rng(0).standard_normal(shape, np.float32))
    figures = {}
    for mode in options.modes:
        calls = {name: training_step(layer, x, mode == "xla") for name, layer in layers(options.units).items()}
        figures[mode] = seconds = seconds_of(calls, options.rounds)
        over_none = {name: median_of(operator.sub, seconds[name], seconds["none"]) for name in seconds}
        print(f"{list(shape)} to {options.units} units, {mode}")
        for name, measured in seconds.items():
            to_keras = median_of(operator.truediv, measured, seconds["keras GRU"])
            line = f"    {name:26}{statistics.median(measured) * 1e3:10.1f}{to_keras:10.2f}"
            if name not in ("keras GRU", "none"):
                line += f"{over_none[name] * 1e3:12.1f}{over_none[name] / over_none['layer']:10.2f}"
            print(line, flush=True)
    if options.json:
        given = {name: value for name, value in vars(options).items() if name not in ("json", "modes")}
        write_log(options.json, "recurrent", given, figures)


if __name__ == "__main__":
    main()
