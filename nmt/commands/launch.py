"""`python -m nmt launch`."""

import argparse

from ..config_fields import positive
from ..errors import UserError
from . import train
from .arguments import Parser, add_number
from .processes import train_in_processes, visible_gpus


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s --processes N train -m DIR [options of train]"
    each = "each gets one GPU or, if there are none, a share of the cores"
    add_number(parser, "processes", int, positive(None, each, 1000), required=True)
    parser.add_argument("command", choices=["train"], help="the command to run in each process (required)")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="options", help="its options")


def run(arguments: argparse.Namespace) -> None:
    """Trains one model with several processes on this machine."""
    _check_options(arguments.words)
    gpus = visible_gpus()
    if gpus and len(gpus) < arguments.processes:
        raise UserError(f"--processes {arguments.processes} needs {arguments.processes} GPUs; there are {len(gpus)}")
    train_in_processes(arguments.words, arguments.processes)


def _check_options(words: list[str]) -> None:
    """Refuses wrong options of `train` here, so that the message is printed once and not by each process."""
    parser = Parser(prog="python -m nmt train")
    train.add_arguments(parser)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        parser.unrecognized(unknown)
    train.read_config(arguments)
