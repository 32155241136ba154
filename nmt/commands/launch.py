"""`python -m nmt launch`."""

import argparse
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import tensorflow as tf

from ..errors import UserError
from . import train
from .arguments import Parser, positive_int

_ROOT = Path(__file__).parents[2]  # on PYTHONPATH, so that a child finds the package from any directory
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_SECONDS = 120  # for the others to end after one of them has failed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s --processes N train -m DIR [options of train]"
    parser.add_argument(
        "--processes", type=positive_int, required=True, metavar="N", help="one for each GPU (above 0; required)"
    )
    parser.add_argument("command", choices=["train"], help="the command to run in each process (required)")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="options", help="its options")


def run(arguments: argparse.Namespace) -> None:
    """Trains one model with several processes on this machine."""
    _check_options(arguments.words)
    gpus = _gpus()
    if gpus and len(gpus) < arguments.processes:
        raise UserError(f"--processes {arguments.processes} needs {arguments.processes} GPUs; there are {len(gpus)}")
    addresses = [f"localhost:{port}" for port in free_ports(arguments.processes)]
    command = [sys.executable, "-m", "nmt", arguments.command, *arguments.words]
    processes: list[subprocess.Popen] = []

    def forward(number: int, frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    try:
        for rank in range(len(addresses)):
            environment = _environment(addresses, rank, gpus)
            processes.append(
                subprocess.Popen(command, env=environment, start_new_session=True, preexec_fn=_end_with_parent)
            )
            if not gpus:
                _give_cores(processes[rank].pid, rank, arguments.processes)
        statuses = _wait(processes)
    finally:
        for process in processes:
            process.kill()
    if failed := next((status for status in statuses if status), 0):
        sys.exit(failed if failed > 0 else 128 - failed)


def _check_options(words: list[str]) -> None:
    """Refuses wrong options of `train` here, so that the message is printed once and not by each process."""
    parser = Parser(prog="python -m nmt train")
    train.add_arguments(parser)
    train.read_config(parser.parse_args(words))


def _wait(processes: list[subprocess.Popen]) -> list[int]:
    """Waits for all processes and returns their statuses. Kills the others `_SECONDS` after one has failed."""
    end = float("inf")
    while any(process.poll() is None for process in processes):
        if any(process.returncode for process in processes):
            end = min(end, time.monotonic() + _SECONDS)
        if time.monotonic() > end:
            for process in processes:
                process.kill()
        time.sleep(0.1)
    return [process.returncode for process in processes]


def _give_cores(process: int, rank: int, count: int) -> None:
    """Restricts a process to its share of the cores, so that threads of several do not wait for each other."""
    if hasattr(os, "sched_setaffinity"):  # not on macOS and Windows
        cores = sorted(os.sched_getaffinity(0))
        if count <= len(cores):
            os.sched_setaffinity(process, cores[rank * len(cores) // count : (rank + 1) * len(cores) // count])


def _end_with_parent() -> None:
    """Asks Linux to send SIGTERM to this process when `launch` is killed, so that no process trains on alone."""
    if _prctl:
        _prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)


def _environment(addresses: list[str], rank: int, gpus: list[str]) -> dict[str, str]:
    """Returns the environment of a process, which holds its rank and, if there are GPUs, its GPU."""
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    own = {"CUDA_VISIBLE_DEVICES": gpus[rank]} if gpus else {}
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TF_CONFIG": json.dumps(config), **own}


def _gpus() -> list[str]:
    """Returns the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    count = len(tf.config.list_physical_devices("GPU"))
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:count] if named else [str(i) for i in range(count)]


def free_ports(count: int) -> list[int]:
    """Returns ports that no program uses now."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
