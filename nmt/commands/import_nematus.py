"""`python -m nmt import-nematus`."""

import argparse

from ..messages import log
from ..nematus_models.importing import import_checkpoint


def run(arguments: argparse.Namespace) -> None:
    import_checkpoint(arguments.checkpoint, arguments.to, arguments.dictionaries)
    log.info(f"{arguments.to} holds the model of {arguments.checkpoint}")
