"""`python -m nmt import-nematus`."""

import argparse
import logging

from ..config import Config
from ..nematus_models.importing import import_checkpoint
from ..system import build_system

_log = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> None:

    def build(config: Config):
        system = build_system(config, config.dictionaries)
        return system.model.variables, system.made_with

    import_checkpoint(arguments.checkpoint, arguments.to, arguments.dictionaries, build)
    _log.info(f"{arguments.to} holds the model of {arguments.checkpoint}")
