"""`python -m nmt average`."""

import argparse
from pathlib import Path

import numpy as np

from ..config import read_options
from ..config_fields import MOST, positive
from ..errors import UserError
from ..storage.checkpoints import BEST, kept_checkpoints, load_checkpoint, save_checkpoint
from ..storage.files import atomic_directory, read_inside
from ..system import load_system
from ..training.progress import Progress
from .arguments import add_model, add_number, add_path, say

_FILES = ("config.json", "versions.json", "files.json", "nematus.json", "source.*", "target.*")  # of a model directory
_LARGEST = 1 << 26  # bytes of one of them


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    add_number(parser, "last", int, positive(None, "average only the latest N; by default, all kept", MOST))
    add_number(parser, "best", int, positive(None, "average only the best N, by --valid_metric", MOST))
    add_path(parser, "--to", metavar="DIR", required=True, help="directory of the new model")


def run(arguments: argparse.Namespace) -> None:
    """Averages the weights of the models that `train --keep` and `--keep_best` kept."""
    if arguments.last and arguments.best:
        raise UserError("--last and --best choose different models; give one of them")
    kept, wanted = kept_checkpoints(arguments.model), arguments.last or arguments.best
    preferred = _best(arguments.model, kept) if arguments.best else kept[::-1]
    chosen = [path for path in kept if path in preferred[:wanted]]
    if not chosen or len(chosen) < (wanted or 0):
        option = "--keep_best" if arguments.best else "--keep"
        raise UserError(f"{arguments.model} holds {len(kept)} kept models; train with {option} {wanted or 5}")
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


def _best(directory: Path, kept: list[Path]) -> list[Path]:
    """Returns those kept models that the last ranking of the training compares, the best first."""
    progress = Progress.from_json(read_options(directory / "progress.json", directory))
    by_update = {int(path.stem): path for path in kept}
    return [by_update[each.update] for each in progress.ranking if each.update in by_update]
