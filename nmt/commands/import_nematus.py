"""`python -m nmt import-nematus`."""

import argparse

from ..config import Config
from ..messages import log
from ..nematus_models.importing import import_checkpoint
from ..system import build_system


def run(arguments: argparse.Namespace) -> None:

    def build(config: Config):
        system = build_system(config, config.dictionaries)
        return system.model.variables, system.made_with

    import_checkpoint(arguments.checkpoint, arguments.to, arguments.dictionaries, build)
    log.info(f"{arguments.to} holds the model of {arguments.checkpoint}")
