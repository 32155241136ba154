"""Times LayerNorm encoders before and after `fold_layer_norm`.

    python benchmarks/convert.py                          # takes some minutes
    python benchmarks/convert.py --models gru --modes graph
    python benchmarks/convert.py --json CONVERT.json      # for tables.py

The models run inference on a fixed batch of [batch, time] tokens. In each mode, the original and the folded model run
in turn for many rounds, so that other load on the machine affects both equally.

Columns: median milliseconds of both models; the speed-up, which is the median of the rounds' ratios; and the largest
difference between the outputs, relative to the largest output.
"""

import argparse
import os
import statistics

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from figures_log import write_log
from interleaved import seconds_of

from rmsnorm_tf import RMSNormGRU, fold_layer_norm

layers = keras.layers
WORDS = 1000


def gru_encoder(units, depth):
    """Builds a stack of bidirectional GRUs with LayerNorm inside."""
    tokens = keras.Input((None,), dtype="int32")
    x = layers.Embedding(WORDS, units)(tokens)
    for _ in range(depth):
        x = layers.Bidirectional(RMSNormGRU(units, normalization="layer", return_sequences=True))(x)
    return keras.Model(tokens, x)


def transformer_encoder(units, depth):
    """Builds a pre-norm Transformer encoder with LayerNorm."""
    tokens = keras.Input((None,), dtype="int32")
    x = layers.Embedding(WORDS, units)(tokens)
    for _ in range(depth):
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.MultiHeadAttention(8, units // 8)(y, y)
        y = layers.LayerNormalization(epsilon=1e-6)(x)
        x = x + layers.Dense(units)(layers.Dense(4 * units, "relu")(y))
    return keras.Model(tokens, layers.LayerNormalization(epsilon=1e-6)(x))


MODELS = {"gru": gru_encoder, "transformer": transformer_encoder}
MODES = ["graph", "xla"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--units", type=int, default=512)
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--time", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()

    print(f"tensorflow {tf.__version__}, keras {keras.__version__}, {os.cpu_count()} cores")
    print(f"{'':24}{'LayerNorm':>12}{'folded':>12}{'speed-up':>12}{'difference':>12}")
    tokens = tf.constant(np.random.default_rng(0).integers(0, WORDS, (options.batch, options.time)))
    figures = {}
    for name in options.models:
        model = MODELS[name](options.units, options.depth)
        folded, report = fold_layer_norm(model)
        assert all(entry.converted for entry in report)
        expected, actual = model(tokens).numpy(), folded(tokens).numpy()
        difference = np.max(np.abs(actual - expected)) / np.max(np.abs(expected))
        figures[name] = {"difference": float(difference), "seconds": {}}
        for mode in options.modes:
            compiled = {"before": tf.function(model, jit_compile=mode == "xla")}
            compiled["after"] = tf.function(folded, jit_compile=mode == "xla")
            calls = {key: lambda call=call: call(tokens).numpy() for key, call in compiled.items()}
            figures[name]["seconds"][mode] = seconds_of(calls, options.rounds)
            before, after = figures[name]["seconds"][mode].values()
            speed_up = statistics.median(b / a for b, a in zip(before, after, strict=True))
            medians = "".join(f"{statistics.median(s) * 1e3:12.1f}" for s in (before, after))
            print(f"{name + ', ' + mode:24}{medians}{speed_up:12.3f}{difference:12.1e}", flush=True)
    if options.json:
        given = {name: getattr(options, name) for name in ("units", "depth", "batch", "time", "rounds")}
        write_log(options.json, "convert", given, figures)


if __name__ == "__main__":
    main()
