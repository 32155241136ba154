"""`python -m nmt import-nematus`."""

import argparse
from pathlib import Path

from ..config import Config
from ..nematus_models.importing import import_checkpoint
from ..system import build_system
from .arguments import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT", help="path without extension, as .../model-20 (required)"
    )
    parser.add_argument("--to", type=Path, required=True, metavar="DIR", help="where the model goes (required)")
    parser.add_argument(
        "--dictionaries",
        type=Path,
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help=".json dictionaries (default: those named in the options of the checkpoint)",
    )


def run(arguments: argparse.Namespace) -> None:
    """Converts a Nematus checkpoint to a model."""

    def build(config: Config):
        system = build_system(config, config.dictionaries)
        return system.model.variables, system.made_with

    import_checkpoint(arguments.checkpoint, arguments.to, arguments.dictionaries, build)
    say(f"{arguments.to} holds the model of {arguments.checkpoint}")
