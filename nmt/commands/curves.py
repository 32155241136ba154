"""`python -m nmt curves`."""

import argparse
import os
from pathlib import Path

from ..errors import UserError
from ..storage.files import atomic_write, read_json
from ..training.progress import Progress, Validation

_PANELS = {"valid_loss": "validation loss (nats per token)", "bleu": "validation BLEU", "chrf": "validation chrF"}
_MARKERS = "o^sDvPX*<>"


def run(arguments: argparse.Namespace) -> None:
    if arguments.to.suffix not in (".png", ".svg"):
        raise UserError(f"{arguments.to} must end in .png or .svg")
    trainings = {os.fspath(directory): _validations(directory) for directory in arguments.models}
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("curves needs matplotlib: pip install matplotlib") from None
    figure = Figure(figsize=(4.5 * len(_PANELS), 3.6), layout="constrained")
    for axes, (name, label) in zip(figure.subplots(1, len(_PANELS)), _PANELS.items(), strict=True):
        for number, (directory, validations) in enumerate(trainings.items()):
            x, y = ([getattr(each, axis) for each in validations] for axis in (arguments.by, name))
            dashes = (0, (1 + number % 5, number % 5)) if number % 5 else "-"
            axes.plot(x, y, marker=_MARKERS[number % len(_MARKERS)], linestyle=dashes, markersize=4, label=directory)
        axes.set(xlabel=arguments.by, title=label)
        axes.grid(alpha=0.3)
    figure.axes[0].legend()
    with atomic_write(arguments.to, "wb") as file:
        figure.savefig(file, format=arguments.to.suffix[1:], dpi=150)


def _validations(directory: Path) -> tuple[Validation, ...]:
    """Returns the validations of a training; raises `UserError` if there are none."""
    path = directory / "progress.json"
    if not path.exists():
        raise UserError(f"{directory} has no validations: its progress.json is missing")
    return Progress.from_json(read_json(path, directory)).validations
