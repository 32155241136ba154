"""`python -m nmt import-marian`."""

import argparse

from ..messages import log
from ..nematus_models.marian import import_marian


def run(arguments: argparse.Namespace) -> None:
    origin, notes = import_marian(arguments.folder, arguments.to, arguments.licence)
    for note in notes:
        log.info(note)
    log.info(f"{arguments.to} holds the model of {arguments.folder}; licence: {origin['licence']}")
