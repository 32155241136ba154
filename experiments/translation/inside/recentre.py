"""Initialises the matrices of a model around another centre.

It runs in the patched copy of the baseline:

    python -m experiments.translation.inside.recentre --model DIR --config FILE --centre 0.2 --moved
    all

Writes a checkpoint of update 0. `nmt train` with the same configuration continues from it.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

import keras

from nmt.config import make_config
from nmt.storage.cache import open_cache
from nmt.storage.checkpoints import LAST, save_checkpoint
from nmt.storage.files import read_json
from nmt.system import file_digests, open_system, save_system
from nmt.training.progress import Progress
from nmt.training.update import Update

_UNNORMALIZED = ("output_kernel", "hidden_to_score")  # matrices without a norm behind them


def _moves(variable: keras.Variable, moved: str) -> bool:
    """Returns whether a variable is moved; see `Condition.moved`."""
    if len(variable.shape) != 2 or moved == "all":
        return len(variable.shape) == 2
    is_embedding = variable.name == "embeddings"
    return (
        is_embedding
        if moved == "embeddings"
        else not is_embedding and variable.name not in _UNNORMALIZED
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, metavar="DIR")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    parser.add_argument("--centre", type=float, required=True)
    parser.add_argument(
        "--moved", choices=("all", "embeddings", "matrices"), default="all", help="default: all"
    )
    options = parser.parse_args()
    config = make_config(read_json(options.config))
    keras.utils.set_random_seed(config.seed)
    options.model.mkdir(parents=True, exist_ok=True)
    system = open_system(config, options.model, None)
    for variable in system.model.trainable_variables:
        if _moves(variable, options.moved):
            variable.assign_add(keras.ops.full(variable.shape, options.centre))
    save_system(system, options.model, file_digests(config, open_cache()))
    variables = Update(system.model, config).variables
    save_checkpoint(options.model / LAST, variables, asdict(Progress()), system.fingerprint)


if __name__ == "__main__":
    main()
