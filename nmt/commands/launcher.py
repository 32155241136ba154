"""Starts the replicas of a training on this machine, each with its GPU or cores, and waits."""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from ..config import Config
from ..errors import describe_end
from ..messages import log
from ..training.replicas import HELD_PORT

# On PYTHONPATH, so that a child finds the package from any directory.
_ROOT = Path(__file__).parents[2]
_SECONDS = 10  # for the others to end after one of them has failed
_LAUNCHER = "NMT_LAUNCHER"  # variable of the environment: the process that started this one
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def visible_gpus() -> list[str]:
    """Returns the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    count = len(tf.config.list_physical_devices("GPU"))
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",")[:count] if named else [str(i) for i in range(count)]


def launch_replicas(config: Config, model: Path, count: int) -> None:
    """Runs `train` in several processes that train one model. Exits with the status of the first
    one that failed.

    Args:
        config: The configuration of the training.
        model: Its directory.
        count: Number of processes. Each has a GPU of its own, or its share of the cores if there
            are no GPUs.
    """
    gpus = visible_gpus()
    # A process that is restricted after its start may count all cores first, and threads of several
    # wait for each other. So this one, which waits, takes the share of each that it starts.
    # macOS does not tell which cores there are.
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    shares = np.array_split(cores, count) if count <= len(cores) else []
    received = []
    processes: list[subprocess.Popen] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: received.append(number))
    with tempfile.TemporaryDirectory() as folder:
        options = Path(folder, "config.json")
        config.save(options)
        command = [sys.executable, "-m", "nmt", "train", "-m", model, "--config", options]
        try:
            with contextlib.ExitStack() as held:
                sockets = [held.enter_context(each) for each in reserved_ports(count)]
                addresses = [f"localhost:{each.getsockname()[1]}" for each in sockets]
                for rank, port in enumerate(sockets):
                    if shares and not gpus:
                        os.sched_setaffinity(0, shares[rank].tolist())
                    processes.append(
                        subprocess.Popen(
                            command,
                            env=_environment(addresses, rank, gpus, port.fileno()),
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


def follow_launcher() -> bool:
    """Returns whether `launch_replicas` started this process.

    Then it gets SIGTERM when that is killed, on Linux.
    """
    launcher = os.environ.pop(_LAUNCHER, "")
    if launcher and _prctl:
        _prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
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
        failed = failed or next((each for each in processes if each.returncode), None)
        if failed and end == float("inf") and (not asked or processes[0].returncode is not None):
            end = time.monotonic() + _SECONDS
        if time.monotonic() > end:
            log.info(
                f"process {processes.index(failed) + 1} {describe_end(failed.returncode)}, so the "
                "others are ended; the same command resumes the training"
            )
            end = time.monotonic() + _SECONDS
            for process in processes:
                process.kill()
        time.sleep(0.1)
    return next((each.returncode for each in [failed, *processes] if each and each.returncode), 0)


def _environment(addresses: list[str], rank: int, gpus: list[str], port: int) -> dict[str, str]:
    """Returns the environment of a process, with its rank and, if there are GPUs, its GPU."""
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    own = {"CUDA_VISIBLE_DEVICES": gpus[rank]} if gpus else {}
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "TF_CONFIG": json.dumps(config), **own} | {
        HELD_PORT: str(port),
        "TF_GRPC_REUSE_PORT": "1",  # else TensorFlow could not listen at a held port
        _LAUNCHER: str(os.getpid()),
    }
