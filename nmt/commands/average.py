"""`python -m nmt average`."""

import argparse

import numpy as np

from ..errors import UserError
from ..storage.checkpoints import BEST, kept_checkpoints, load_checkpoint, save_checkpoint
from ..storage.files import atomic_directory, read_inside, read_json
from ..system import load_system
from ..training.progress import Progress
from .arguments import say

_FILES = ("config.json", "versions.json", "files.json", "source.*", "target.*")  # of a model directory
_LARGEST = 1 << 26  # bytes of one of them


def run(arguments: argparse.Namespace) -> None:
    if arguments.last and arguments.best:
        raise UserError("--last and --best choose different models; give one of them")
    system = load_system(arguments.model)
    kept = {int(path.stem): path for path in kept_checkpoints(arguments.model)}
    count = arguments.last or arguments.best
    updates = _updates(arguments) if count else list(kept)
    if not updates or len(updates) < (count or 0) or not kept.keys() >= set(updates):
        option, which = ("--keep_best", "best") if arguments.best else ("--keep", "latest")
        wanted = f", but not those of the {count} {which} validations" if count else ""
        raise UserError(f"{arguments.model} holds {len(kept)} kept models{wanted}; train with {option} {count or 5}")
    variables = system.model.variables
    sums = [np.zeros(variable.shape) for variable in variables]  # float64
    for update in updates:
        load_checkpoint(kept[update], variables, system.made_with)
        sums = [total + variable.numpy() for total, variable in zip(sums, variables, strict=True)]
    for variable, total in zip(variables, sums, strict=True):
        variable.assign(total / len(updates))
    with atomic_directory(arguments.to) as directory:
        for pattern in _FILES:
            for path in arguments.model.glob(pattern):
                (directory / path.name).write_bytes(read_inside(path, arguments.model, _LARGEST))
        save_checkpoint(directory / BEST, variables, {}, system.made_with)
    say(f"{arguments.to}: the average of updates {', '.join(map(str, updates))}")


def _updates(arguments: argparse.Namespace) -> list[int]:
    """Returns the updates of the latest validations, or of the best ones of the last ranking, in their order."""
    progress = Progress.from_json(read_json(arguments.model / "progress.json", arguments.model))
    chosen = progress.ranking[: arguments.best] if arguments.best else progress.validations[-arguments.last :]
    return sorted(each.update for each in chosen)
