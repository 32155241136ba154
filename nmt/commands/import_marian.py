"""`python -m nmt import-marian`."""

import argparse
from pathlib import Path

from ..config import Config
from ..messages import log
from ..nematus_models.marian import import_marian
from ..system import build_system, require_room


def run(arguments: argparse.Namespace) -> None:

    def build(config: Config, weights: Path, size: tuple[int, int]):
        require_room(config, weights, size)
        system = build_system(config, tuple(map(Path, config.dictionaries)))
        return system.model.variables, system.made_with

    origin = import_marian(arguments.folder, arguments.to, arguments.licence, build)
    log.info(f"{arguments.to} holds the model of {arguments.folder}; licence: {origin['licence']}")
