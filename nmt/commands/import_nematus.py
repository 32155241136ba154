"""`python -m nmt import-nematus`."""

import argparse
from pathlib import Path

from ..config import Config
from ..nematus_models.importing import import_checkpoint
from ..system import build_system
from .arguments import add_path, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT", help="path without extension, as .../model-20 (required)"
    )
    add_path(parser, "--to", metavar="DIR", required=True, help="where the model goes")
    about = ".json dictionaries (default: those named in the options of the checkpoint)"
    add_path(parser, "--dictionaries", nargs=2, metavar=("SOURCE", "TARGET"), help=about)


def run(arguments: argparse.Namespace) -> None:
    """Converts a Nematus checkpoint to a model."""

    def build(config: Config):
        system = build_system(config, config.dictionaries)
        return system.model.variables, system.made_with

    import_checkpoint(arguments.checkpoint, arguments.to, arguments.dictionaries, build)
    say(f"{arguments.to} holds the model of {arguments.checkpoint}")
