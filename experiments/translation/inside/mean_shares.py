"""Measures the share of the mean in the input of every norm.

It runs in the patched copy of the baseline:

    python -m experiments.translation.inside.mean_shares --model DIR --source FILE --target FILE
    --to FILE.json

The share is E[mean(a)^2] / E[mean(a^2)] over the units of an input a: what LayerNorm's centring
removes. It is measured in the untrained model and in every model that `train --keep` kept.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from experiments.runs.probes import share_of_mean
from nmt.model.layers import Block
from nmt.normalization import Normalization, build_normalization
from nmt.storage.checkpoints import kept_checkpoints, load_checkpoint
from nmt.storage.files import write_json
from nmt.system import System, build_system, load_system
from nmt.text.batches import pad, ragged
from nmt.text.datasets import ValidationData
from nmt.text.parallel_text import ParallelText

SENTENCES = 24  # about as many are measured
Call = Callable[[tf.Tensor], tf.Tensor]


def measure_shares(system: System, text: ParallelText) -> dict[str, float]:
    """Returns the share of the mean in the input of every norm, by its path in the model.

    Args:
        system: The system. Its norms stay replaced.
        text: Sentence pairs. Some of all lengths are measured, one at a time, because padding would
            count.
    """
    norms = record_inputs(system.model, system.config.normalization)
    config = replace(system.config, valid_sample=None, valid_target_prefixes=None)
    data = ValidationData(text, system.vocabularies, config)
    pairs = sorted(zip(*data.ids, strict=True), key=lambda pair: max(map(len, pair)), reverse=True)
    for pair in pairs[:: max(1, data.pairs // SENTENCES)]:
        source, target = (pad(ragged([ids])) for ids in pair)
        system.model.costs(*source, *target)
    found = {}
    for path, inputs in norms.items():
        rows = np.concatenate([np.reshape(x, [-1, x.shape[-1]]) for x in inputs])  # [rows, units]
        found[path] = share_of_mean(rows)
    return found


def record_inputs(model: keras.Model, normalization: Normalization) -> dict[str, list[tf.Tensor]]:
    """Makes every norm append its inputs `[rows, units]` to a list in eager calls.

    The norms of this kind stay replaced. The lists come by the path of the norm in the model.
    """
    found: dict[str, list[tf.Tensor]] = {}
    for path, owner, name in list(
        _norms(model, type(build_normalization(normalization, 1, "norm")))
    ):
        found[path] = []
        setattr(owner, name, _recording(getattr(owner, name), found[path]))
    return found


def _norms(
    layer: keras.layers.Layer, norm: type, path: str = ""
) -> Iterator[tuple[str, keras.layers.Layer, str]]:
    """Yields the path, owner and attribute of every norm of this type."""
    for name, value in vars(layer).items():
        if isinstance(value, norm):
            yield f"{path}{name}", layer, name
        elif isinstance(value, Block):
            yield from _norms(value, norm, f"{path}{name}.")
        elif isinstance(value, list) and not name.startswith(
            "_"
        ):  # levels; Keras has private lists of all layers
            for block in (each for each in value if isinstance(each, Block)):
                yield from _norms(block, norm, f"{path}{block.name}.")


def _recording(norm: Call, inputs: list[tf.Tensor]) -> Call:
    def call(x: tf.Tensor) -> tf.Tensor:
        inputs.append(x)
        return norm(x)

    return call


def _by_update(model: Path, text: ParallelText) -> dict[int, dict[str, float]]:
    """Returns the shares after each number of updates."""
    config = load_system(model).config
    # TensorFlow then drops the tokenizers of systems that exist already.
    keras.utils.set_random_seed(config.seed)
    found = {0: measure_shares(build_system(config, config.dictionaries), text)}
    for path in kept_checkpoints(model):
        system = load_system(model)
        load_checkpoint(path, system.model.variables, system.fingerprint)
        found[int(path.stem)] = measure_shares(system, text)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, metavar="DIR")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE")
    parser.add_argument("--target", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--to", type=Path, required=True, metavar="FILE", help="where the figures go, as JSON"
    )
    options = parser.parse_args()
    measured = _by_update(options.model, ParallelText(options.source, options.target))
    write_json(options.to, measured)


if __name__ == "__main__":
    main()
