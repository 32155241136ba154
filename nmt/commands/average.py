"""`python -m nmt average`."""

import argparse
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..storage.checkpoints import BEST, kept_checkpoints, load_checkpoint, save_checkpoint
from ..storage.files import atomic_directory, read_inside
from ..system import load_system
from .arguments import add_model, positive_int, say

_FILES = ("config.json", "versions.json", "files.json", "nematus.json", "source.*", "target.*")  # of a model directory
_LARGEST = 1 << 26  # bytes of one of them


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--last", type=positive_int, metavar="N", help="average only the latest N (above 0; default: all kept)"
    )
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="directory of the new model (required)")


def run(arguments: argparse.Namespace) -> None:
    """Averages the weights of the models that `train --keep` kept."""
    kept = kept_checkpoints(arguments.model)
    chosen = kept[-arguments.last :] if arguments.last else kept
    if not chosen or len(chosen) < (arguments.last or 0):
        raise UserError(f"{arguments.model} holds {len(kept)} kept models; train with --keep {arguments.last or 5}")
    system = load_system(arguments.model)
    variables = system.model.variables
    sums = [np.zeros(variable.shape) for variable in variables]  # float64
    for path in chosen:
        load_checkpoint(path, variables, system.made_with)
        sums = [total + variable.numpy() for total, variable in zip(sums, variables, strict=True)]
    for variable, total in zip(variables, sums, strict=True):
        variable.assign(total / len(chosen))
    with atomic_directory(arguments.to) as directory:
        directory.mkdir()
        for pattern in _FILES:
            for path in arguments.model.glob(pattern):
                (directory / path.name).write_bytes(read_inside(path, arguments.model, _LARGEST))
        save_checkpoint(directory / BEST, variables, {}, system.made_with)
    say(f"{arguments.to}: the average of updates {', '.join(path.stem for path in chosen)}")
