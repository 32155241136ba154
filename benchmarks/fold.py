"""Folds LayerNorm in GRUs and in models of KerasHub, and replaces the norms of its RMSNorm models.

    python benchmarks/fold.py                             # takes some minutes
    python benchmarks/fold.py --models GPT-2 Llama
    python benchmarks/fold.py --json FOLD.json            # for tables.py

Models have random weights. The original and the converted model run in turn for many rounds, in graph mode: inference
for LayerNorm models, a training step (SGD) for RMSNorm models.

Columns: norms converted and left; median milliseconds of both models; the median of the rounds' ratios, after over
before; the largest difference between the outputs, relative to the largest output; why norms are left.
"""

import argparse
import os
import statistics
from collections import Counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import hub_models
import keras
import numpy as np
import tensorflow as tf
from runner import seconds_of, write_log

from rmsnorm_tf import RMSNormGRU, fold_layer_norm, replace_rms_norm


def grus(width, depth, length):
    """Returns bidirectional GRUs with LayerNorm inside."""
    tokens = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(1000, width)(tokens)
    for _ in range(depth):
        layer = RMSNormGRU(width, normalization="layer", return_sequences=True)
        x = keras.layers.Bidirectional(layer)(x)
    return keras.Model(tokens, x)


MODELS = {"GRU": grus, **hub_models.LAYER_NORM, **hub_models.RMS_NORM}


def difference(model, converted, inputs):
    expected, actual = (keras.tree.flatten(m(inputs, training=False)) for m in (model, converted))
    return max(np.max(np.abs(a - e)) / np.max(np.abs(e)) for a, e in zip(actual, expected, strict=True))


def inference(model, inputs):
    """Returns a function that runs the model and waits for it."""
    run = tf.function(lambda: keras.tree.flatten(model(inputs, training=False)))
    return lambda: run()[0].numpy()


def training_step(model, inputs):
    """Returns a function that makes one step and waits for it."""
    optimizer = keras.optimizers.SGD(1e-6)
    optimizer.build(model.trainable_variables)

    @tf.function
    def run():
        with tf.GradientTape() as tape:
            loss = tf.add_n([tf.reduce_mean(y**2) for y in keras.tree.flatten(model(inputs, training=True))])
        variables = [variable.value for variable in model.trainable_variables]
        optimizer.apply(tape.gradient(loss, variables), model.trainable_variables)
        return loss

    return lambda: run().numpy()


def kind_of(entry):
    """Returns the reason why a norm stays, without the names of the layers."""
    if entry.reason.startswith("post-LN"):
        return "post-LN"
    return " ".join("LAYER" if "/" in word or "_" in word else word for word in entry.reason.split())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()

    print(f"tensorflow {tf.__version__}, keras {keras.__version__}, {os.cpu_count()} cores")
    print(f"{'':10}{'converted':>10}{'left':>6}{'before':>10}{'after':>10}{'ratio':>8}{'difference':>12}  why left")
    figures = {}
    for name in options.models:
        keras.utils.clear_session()
        model = hub_models.draw(MODELS[name](options.width, options.depth, options.length))
        inputs = hub_models.inputs_for(model, options.batch, options.length)
        inputs = keras.tree.map_structure(tf.constant, inputs)
        if name in hub_models.RMS_NORM:
            converted, report = replace_rms_norm(model)
            make = training_step
        else:
            converted, report = fold_layer_norm(model, for_inference=True)
            make = inference
        error = difference(model, converted, inputs)
        left = [entry for entry in report if not entry.converted]
        calls = {"before": make(model, inputs), "after": make(converted, inputs)}
        seconds = seconds_of(calls, options.rounds)
        before, after = seconds.values()
        ratio = statistics.median(a / b for b, a in zip(before, after, strict=True))
        medians = "".join(f"{statistics.median(s) * 1e3:10.1f}" for s in (before, after))
        reasons = Counter(map(kind_of, left))
        why = "; ".join(f"{count} x {reason}" for reason, count in reasons.items())
        figures[name] = {
            "converts": "replace_rms_norm" if name in hub_models.RMS_NORM else "fold_layer_norm",
            "converted": len(report) - len(left),
            "left": reasons,
            "difference": float(error),
            "seconds": seconds,
        }
        counts = f"{name:10}{len(report) - len(left):10}{len(left):6}"
        print(f"{counts}{medians}{ratio(after, before):8.3f}{error:12.1e}  {why}", flush=True)
    if options.json:
        given = {name: getattr(options, name) for name in ("width", "depth", "batch", "length", "rounds")}
        write_log(options.json, "fold", given, figures)


if __name__ == "__main__":
    main()
