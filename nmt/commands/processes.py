"""The processes of a training on this machine: starts them, gives each its GPU or its cores, and waits for them."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import tensorflow as tf

_ROOT = Path(__file__).parents[2]  # on PYTHONPATH, so that a child finds the package from any directory
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SECONDS = 120  # for the others to end after one of them has failed


def visible_gpus() -> list[str]:
    """Returns the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    count = len(tf.config.list_physical_devices("GPU"))
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:count] if named else [str(i) for i in range(count)]


def train_in_processes(options: Sequence[str], count: int) -> None:
    """Runs `train` in several processes that train one model. Exits with the status of the first one that failed.

    Each process has one GPU of its own, or, if there are none, its share of the cores.

    Args:
        options: The command line of `train`, without the name of the command.
        count: Number of processes; if there are GPUs, at most their number.
    """
    gpus = visible_gpus()
    addresses = [f"localhost:{port}" for port in free_ports(count)]
    command = [sys.executable, "-m", "nmt", "train", *options]
    processes: list[subprocess.Popen] = []

    def forward(number: int, frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)

    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)  # until all have started
    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    try:
        for rank in range(count):
            environment = _environment(addresses, rank, gpus)
            processes.append(subprocess.Popen(command, env=environment, start_new_session=True, preexec_fn=_begin))
            if not gpus:
                _give_cores(processes[rank].pid, rank, count)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        statuses = _wait(processes)
    finally:
        for process in processes:
            process.kill()
    if failed := next((status for status in statuses if status), 0):
        sys.exit(failed if failed > 0 else 128 - failed)


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


def _begin() -> None:
    """Prepares a new process: it gets signals, and on Linux SIGTERM when its parent is killed, so none trains alone."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    if _prctl:
        _prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)


def _environment(addresses: list[str], rank: int, gpus: list[str]) -> dict[str, str]:
    """Returns the environment of a process, which holds its rank and, if there are GPUs, its GPU."""
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    own = {"CUDA_VISIBLE_DEVICES": gpus[rank]} if gpus else {}
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TF_CONFIG": json.dumps(config), **own}
