"""`python -m nmt launch`."""

import argparse

from ..errors import UserError
from . import train
from .arguments import Parser
from .parser import train as add_options
from .processes import train_in_processes, visible_gpus


def run(arguments: argparse.Namespace) -> None:
    _check_options(arguments.words)
    gpus = visible_gpus()
    if gpus and len(gpus) < arguments.processes:
        raise UserError(f"--processes {arguments.processes} needs {arguments.processes} GPUs; there are {len(gpus)}")
    train_in_processes(arguments.words, arguments.processes)


def _check_options(words: list[str]) -> None:
    """Refuses wrong options of `train` here, so that the message is printed once and not by each process."""
    parser = Parser(prog="python -m nmt train")
    add_options(parser)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        parser.unrecognized(unknown)
    train.config_of(arguments)
