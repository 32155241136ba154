"""`python -m nmt average`."""

import argparse
from pathlib import Path

import numpy as np

from ..errors import UserError
from ..messages import log
from ..storage.checkpoints import BEST, kept_checkpoints, load_checkpoint, save_checkpoint
from ..storage.files import ORIGIN, atomic_directory, read_inside, read_json
from ..system import load_system
from ..training.progress import Progress

# Files of a model directory that an average keeps.
_FILES = ("config.json", "versions.json", "files.json", ORIGIN, "source.*", "target.*")


def run(arguments: argparse.Namespace) -> None:
    system = load_system(arguments.model[0])
    checkpoints = [path for each in arguments.model for path in _chosen(each, arguments)]
    variables = system.model.variables
    sums = [np.zeros(variable.shape) for variable in variables]  # float64
    for path in checkpoints:
        load_checkpoint(path, variables, system.reload_fingerprint)
        for total, variable in zip(sums, variables, strict=True):
            total += variable.numpy()
    for variable, total in zip(variables, sums, strict=True):
        variable.assign(total / len(checkpoints))
    with atomic_directory(arguments.to) as directory:
        for pattern in _FILES:
            # Only some may have an origin.
            found = (list(each.glob(pattern)) for each in arguments.model)
            for path in next(filter(None, found), []):
                (directory / path.name).write_bytes(read_inside(path, path.parent))
        save_checkpoint(directory / BEST, variables, {}, system.fingerprint)
    log.info(f"{arguments.to}: the average of {', '.join(map(str, checkpoints))}")


def _chosen(directory: Path, arguments: argparse.Namespace) -> list[Path]:
    """Returns the kept models of a training, or those of the latest or best validations; of each of
    several trainings, its best one.
    """
    count = arguments.last or arguments.best
    if not count and len(arguments.model) > 1:
        return [directory / BEST]
    kept = {int(path.stem): path for path in kept_checkpoints(directory)}
    updates = list(kept)
    if count:
        progress = Progress.from_json(read_json(directory / "progress.json", directory))
        chosen = progress.ranking[:count] if arguments.best else progress.validations[-count:]
        updates = sorted(each.update for each in chosen)
    if not updates or len(updates) < (count or 0) or not kept.keys() >= set(updates):
        option, which = ("--keep_best", "best") if arguments.best else ("--keep", "latest")
        wanted = f", but not those of the {count} {which} validations" if count else ""
        raise UserError(
            f"{directory} holds {len(kept)} kept models{wanted}; train with {option} {count or 5}"
        )
    return [kept[update] for update in updates]
