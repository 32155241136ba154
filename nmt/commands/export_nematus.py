"""`python -m nmt export-nematus`."""

import argparse

from ..messages import log
from ..nematus_models.exporting import export_checkpoint


def run(arguments: argparse.Namespace) -> None:
    export_checkpoint(arguments.to, arguments.model, arguments.version)
    log.info(f"{arguments.to} holds the model of {arguments.model} for Nematus {arguments.version}")
