"""Times an update by the width of the model and the kind of norm, compiled by XLA and as plain operations.

    python benchmarks/widths.py
    python benchmarks/widths.py --model_types transformer --widths 128 512
    python benchmarks/widths.py --model_types transformer --widths 2048 --layers 1
    python benchmarks/widths.py --widths 512 --json TIMES.json

Nematus, with which the paper measured, runs plain operations. An update is the gradient of a batch of random sentences,
clipping, and the step of Keras's Adam. All kinds take turns in each round, so all their models are in memory. LayerNorm
runs twice: its second ratio is the noise. A Transformer is as in benchmarks/training.py, apart from --layers.

Columns:
    ms          median over the rounds
    / layernorm median of the rounds' ratios to LayerNorm, with its 95% bootstrap interval
    norms       share of the time that exceeds that of none
    MiB         that the norms must move: three reads and two writes of all entries that they normalize
    GiB/s       these bytes over the time that exceeds that of none
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import keras
import numpy as np
import tensorflow as tf
from figures_log import write_log
from interleaved import seconds_of
from training import model_options
from updates import Work, made_up_work, patched_baseline, threads

from experiments.reporting.intervals import median_interval

KINDS = {"none": "none", "layernorm": "layernorm", "layernorm, again": "layernorm", "rmsnorm": "rmsnorm"}
KINDS["prmsnorm"] = "prmsnorm"
MODES = {"XLA": True, "plain": False}
SENTENCES, VOCABULARY = 16, 4000
_PASSES = 5  # forward reads x and writes y; backward reads x and dy and writes dx


def made_up(model_type: str, width: int, layers: int) -> Work:
    """Returns one batch, and how to build a model of this width."""
    sizes = argparse.Namespace(model_type=model_type, embedding_size=width, state_size=width)
    given = model_options(sizes)
    if model_type == "transformer":
        given |= {"transformer_enc_depth": layers, "transformer_dec_depth": layers}
    return made_up_work(1, SENTENCES, VOCABULARY, **given)


def build(work: Work, kind: str) -> tuple[keras.Model, Any]:
    """Returns a model with initial weights and its configuration."""
    from nmt.config import make_config

    config = make_config({**work.options, "layer_normalization_type": kind})
    keras.utils.set_random_seed(1)
    return work.build(config), config


def new_step(work: Work, kind: str, compiled: bool) -> Callable[[], object]:
    """Builds a model and returns a function that updates it with the batch."""
    from nmt.text.batches import Batch
    from nmt.training.update import clip_mean, sum_gradients

    model, config = build(work, kind)
    optimizer = keras.optimizers.Adam(1e-4)
    optimizer.build(model.trainable_variables)
    seed = tf.constant([1, 1])

    @tf.function(jit_compile=compiled, autograph=False)
    def update(*batch):
        sums = sum_gradients(model, Batch(*batch), 0.1, seed)
        clipped, norm = clip_mean(sums, config.clip_c)
        optimizer.apply([tf.convert_to_tensor(gradient) for gradient in clipped])
        return norm

    batch = [tf.constant(each) for each in work.batches[0]]
    return lambda: update(*batch).numpy()


def normalized_entries(work: Work) -> int:
    """Returns the number of entries that the norms of a model normalize in one forward pass of the batch."""
    from experiments.translation.inside.norm_inputs import record_inputs

    model, _ = build(work, "layernorm")  # all kinds normalize the same entries
    norms = record_inputs(model, "layernorm")
    model.costs(*work.batches[0])
    return sum(int(tf.size(x)) for _, inputs in norms.values() for x in inputs)


def measure(model_type: str, width: int, layers: int, rounds: int, baseline: str) -> dict[str, Any]:
    """Returns the seconds of every round by mode and kind, and the bytes that the norms must move.

    Each mode has a process of its own, because TensorFlow keeps what it compiles.
    """
    place = (baseline, model_type, width, layers)
    seconds = {mode: _in_a_process(_seconds, *place, compiled, rounds) for mode, compiled in MODES.items()}
    return {"bytes": _PASSES * 4 * _in_a_process(_entries, *place), "seconds": seconds}


def _in_a_process(function: Callable, *given: Any) -> Any:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(function, *given).result()
        except BrokenProcessPool:
            sys.exit(
                "The system ended a process, probably for lack of memory. Give smaller --widths, or fewer --layers."
            )


def _seconds(
    baseline: str, model_type: str, width: int, layers: int, compiled: bool, rounds: int
) -> dict[str, list[float]]:
    sys.path.insert(0, baseline)
    work = made_up(model_type, width, layers)
    return seconds_of({name: new_step(work, kind, compiled) for name, kind in KINDS.items()}, rounds)


def _entries(baseline: str, model_type: str, width: int, layers: int) -> int:
    sys.path.insert(0, baseline)
    return normalized_entries(made_up(model_type, width, layers))


def cells(seconds: dict[str, list[float]], name: str, moved: int) -> list[str]:
    """Returns the cells of a kind in the table."""
    ratio = median_interval(np.divide(seconds[name], seconds["layernorm"]))
    extra = float(np.median(np.subtract(seconds[name], seconds["none"])))
    found = [f"{1e3 * np.median(seconds[name]):.1f}", "{:.3f} [{:.3f}, {:.3f}]".format(*ratio)]
    if name == "none":
        return [*found, "", "", ""]
    rate = f"{moved / extra / 2**30:.1f}" if extra > 0 else ""
    return [*found, f"{extra / np.median(seconds[name]):.1%}", f"{moved / 2**20:.0f}", rate]


def show(model_type: str, width: int, measured: dict[str, Any]) -> None:
    """Prints the rows of one width."""
    for mode, seconds in measured["seconds"].items():
        for name in seconds:
            row = [model_type, str(width), mode, name, *cells(seconds, name, measured["bytes"])]
            print("".join(f"{cell:>{w}}" for cell, w in zip(row, _WIDTHS, strict=True)), flush=True)


_HEADS = ["model", "width", "mode", "kind", "ms", "/ layernorm", "norms", "MiB", "GiB/s"]
_WIDTHS = [12, 7, 7, 18, 9, 24, 8, 7, 7]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_types", nargs="+", default=["rnn", "transformer"], choices=["rnn", "transformer"])
    parser.add_argument("--widths", nargs="+", type=int, default=[128, 256, 512, 1024, 2048])
    parser.add_argument("--layers", type=int, default=3, help="of each side of a Transformer")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        baseline = patched_baseline(folder)
        print("".join(f"{head:>{w}}" for head, w in zip(_HEADS, _WIDTHS, strict=True)))
        measured: dict[str, dict[int, Any]] = {}
        given = {"sentences": SENTENCES, "vocabulary": VOCABULARY, "threads": threads(), "layers": options.layers}
        for model_type in options.model_types:
            for width in options.widths:
                found = measure(model_type, width, options.layers, options.rounds, baseline)
                measured.setdefault(model_type, {})[width] = found
                show(model_type, width, found)
                if options.json:  # after each width, so that nothing is lost
                    write_log(options.json, "widths", {**given, "rounds": options.rounds}, measured)


if __name__ == "__main__":
    main()
