"""Times a training step of a one-layer GRU with each kind of normalization inside.

    python benchmarks/recurrent.py                          # takes some minutes
    python benchmarks/recurrent.py --units 256 --modes xla
    python benchmarks/recurrent.py --json RECURRENT.json    # for tables.py

In each mode, all layers run in turn for many rounds. The table has the time over that of
keras.layers.GRU and, after the slash, what a norm adds over what LayerNorm adds.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tables
import tensorflow as tf
from runner import parser_of, seconds_of

from rmsnorm_tf import RMSNormGRU


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


def training_step(layer, inputs, jit_compile=False):
    """Returns a function that updates a layer or a model once, and waits for it."""
    layer(inputs)  # builds it
    optimizer = keras.optimizers.SGD(1e-6)
    optimizer.build(layer.trainable_variables)

    @tf.function(jit_compile=jit_compile)
    def step():
        with tf.GradientTape() as tape:
            outputs = keras.tree.flatten(layer(inputs, training=True))
            loss = tf.add_n([tf.reduce_mean(tf.square(y)) for y in outputs])
        variables = [variable.value for variable in layer.trainable_variables]
        optimizer.apply(tape.gradient(loss, variables), layer.trainable_variables)
        return loss

    return lambda: step().numpy()


def main():
    sizes = {"units": 1024, "inputs": 512, "batch": 80, "time": 50}
    options = parser_of(__doc__, **sizes, modes=["graph", "xla"], rounds=15).parse_args()
    shape = (options.batch, options.time, options.inputs)
    x = tf.constant(np.random.default_rng(0).standard_normal(shape, np.float32))
    figures = {}
    for mode in options.modes:
        made = layers(options.units)
        calls = {name: training_step(made[name], x, mode == "xla") for name in made}
        figures[mode] = seconds_of(calls, options.rounds)
        print(mode, {name: f"{tables.ms(each)} ms" for name, each in figures[mode].items()})
    tables.publish(options, "recurrent", figures)


if __name__ == "__main__":
    main()
