"""Folds LayerNorm in models of KerasHub, and replaces the norms of its RMSNorm models.

    python benchmarks/fold.py                             # takes some minutes
    python benchmarks/fold.py --models GPT-2 Llama
    python benchmarks/fold.py --json FOLD.json            # for tables.py

Models have random weights. The original and the converted model run in turn for many rounds, in
graph mode: inference for LayerNorm models, a training step (SGD) for RMSNorm models.
"""

import functools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hub_models
import keras
import numpy as np
import tables
import tensorflow as tf
from recurrent import training_step
from runner import parser_of, ratio, seconds_of

from rmsnorm_tf import fold_layer_norm, replace_rms_norm

MODELS = {**hub_models.LAYER_NORM, **hub_models.RMS_NORM}


def difference(model, converted, inputs):
    expected = keras.tree.flatten(model(inputs, training=False))
    actual = keras.tree.flatten(converted(inputs, training=False))
    pairs = zip(actual, expected, strict=True)
    return max(np.max(np.abs(a - e)) / np.max(np.abs(e)) for a, e in pairs)


def inference(model, inputs):
    """Returns a function that runs the model and waits for it."""
    run = tf.function(lambda: keras.tree.flatten(model(inputs, training=False)))
    return lambda: run()[0].numpy()


CONVERTS = {
    "replace_rms_norm": (replace_rms_norm, training_step),
    "fold_layer_norm": (functools.partial(fold_layer_norm, for_inference=True), inference),
}


def main():
    sizes = {"width": 256, "depth": 4, "batch": 8, "length": 64}
    options = parser_of(__doc__, models=list(MODELS), **sizes, rounds=25).parse_args()
    figures = {}
    for name in options.models:
        keras.utils.clear_session()
        given = (options.width, options.depth, options.length)
        model = hub_models.draw(MODELS[name](*given))
        converted = MODELS[name](*given)
        converted.set_weights(model.get_weights())
        inputs = hub_models.inputs_for(model, options.batch, options.length)
        inputs = keras.tree.map_structure(tf.constant, inputs)
        convert = "replace_rms_norm" if name in hub_models.RMS_NORM else "fold_layer_norm"
        function, make = CONVERTS[convert]
        report = function(converted)
        calls = {"before": make(model, inputs), "after": make(converted, inputs)}
        converts = sum(entry.converted for entry in report.entries)
        figures[name] = {
            "converts": convert,
            "converted": converts,
            "left": len(report.entries) - converts,
            "difference": float(difference(model, converted, inputs)),
            "seconds": seconds_of(calls, options.rounds),
        }
        print(name, f"{ratio(*reversed(figures[name]['seconds'].values())):.3f}", flush=True)
    tables.publish(options, "fold", figures)


if __name__ == "__main__":
    main()
