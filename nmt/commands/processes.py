"""The processes of a training on this machine: starts them, gives each its GPU or its cores, and waits for them."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import tensorflow as tf

from ..errors import describe_end
from ..messages import log
from ..training.replicas import HELD_PORT

_ROOT = Path(__file__).parents[
    2
]  # on PYTHONPATH, so that a child finds the package from any directory
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SECONDS = 10  # for the others to end after one of them has failed
_LAUNCHER = "NMT_LAUNCHER"  # variable of the environment: the process that started this one
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def visible_gpus() -> list[str]:
    """Returns the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    count = len(tf.config.list_physical_devices("GPU"))
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:count] if named else [str(i) for i in range(count)]


def train_in_processes(options: Sequence[str], count: int) -> None:
    """Runs `train` in several processes that train one model. Exits with the status of the first
    one that failed.

    Each process has a GPU of its own, or its share of the cores if there are no GPUs; `count` is at
    most their number. `options` are the command line of `train`, without the name of the command.
    """
    gpus = visible_gpus()
    received = []
    command = [sys.executable, "-m", "nmt", "train", *options]
    processes: list[subprocess.Popen] = []
    for number in _FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: received.append(number))
    try:
        with contextlib.ExitStack() as held:
            sockets = [held.enter_context(each) for each in reserved_ports(count)]
            addresses = [f"localhost:{each.getsockname()[1]}" for each in sockets]
            for rank, port in enumerate(sockets):
                environment = _environment(addresses, rank, gpus, port.fileno())
                with contextlib.nullcontext() if gpus else _share_of_cores(rank, count):
                    processes.append(
                        subprocess.Popen(
                            command,
                            env=environment,
                            start_new_session=True,
                            pass_fds=[port.fileno()],
                        )
                    )
        failed = _wait(processes, received)
    finally:
        for process in processes:
            process.kill()
    if failed:
        sys.exit(failed if failed > 0 else 128 - failed)


def end_with_launcher() -> bool:
    """Returns whether `train_in_processes` started this process.

    Then it gets SIGTERM when that is killed, on Linux.
    """
    launcher = os.environ.pop(_LAUNCHER, "")
    if launcher and _prctl:
        _prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != int(launcher):  # it was killed before
            sys.exit(128 + signal.SIGTERM)
    return bool(launcher)


def reserved_ports(count: int) -> list[socket.socket]:
    """Returns sockets that keep their ports.

    With TF_GRPC_REUSE_PORT=1, TensorFlow can listen there meanwhile.
    """
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        each.bind(("localhost", 0))
    return sockets


def _wait(processes: list[subprocess.Popen], received: list[int]) -> int:
    """Waits for all processes and returns the status of the one that failed first, or 0. Passes on
    received signals.

    `_SECONDS` after one has failed, the others are killed: they may wait for it. After a signal,
    that waits for the end of the first one, which saves.
    """
    end = float("inf")
    failed = None
    asked = False
    while None in [process.poll() for process in processes]:
        while received:
            asked = True
            number = received.pop(0)
            for process in processes:
                process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)
        failed = failed or next((p for p in processes if p.returncode), None)
        if failed and end == float("inf") and (not asked or processes[0].returncode is not None):
            end = time.monotonic() + _SECONDS
        if time.monotonic() > end:
            number = processes.index(failed) + 1
            how = describe_end(failed.returncode)
            log.info(
                f"process {number} {how}, so the others are ended; the same command resumes the training"
            )
            end = time.monotonic() + _SECONDS
            for process in processes:
                process.kill()
        time.sleep(0.1)
    failed = failed or next((p for p in processes if p.returncode), None)
    return failed.returncode if failed else 0


@contextlib.contextmanager
def _share_of_cores(rank: int, count: int) -> Iterator[None]:
    """Restricts this thread, and so each process that it starts, to a share of the cores.

    A process that is restricted after its start may count all cores first, and threads of several
    wait for each other.
    """
    cores = (
        sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    )  # not on macOS and Windows
    if count > len(cores):
        yield
        return
    os.sched_setaffinity(0, cores[rank * len(cores) // count : (rank + 1) * len(cores) // count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _environment(addresses: list[str], rank: int, gpus: list[str], port: int) -> dict[str, str]:
    """Returns the environment of a process, which holds its rank and, if there are GPUs, its GPU."""
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    own = {"CUDA_VISIBLE_DEVICES": gpus[rank]} if gpus else {}
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TF_CONFIG": json.dumps(config), **own} | {
        HELD_PORT: str(port),
        "TF_GRPC_REUSE_PORT": "1",  # else TensorFlow could not listen at a held port
        _LAUNCHER: str(os.getpid()),
    }
