"""The processes of a training, as the environment names them, and how those that `launch` starts end with it."""

import ctypes
import json
import os
import signal
import sys
from typing import NamedTuple

from ..errors import UserError

HELD_PORT = "NMT_HELD_PORT"  # variable of the environment: descriptor of a socket that reserves the port of a process
LAUNCHER = "NMT_LAUNCHER"  # variable of the environment: the process that started this one
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


class Cluster(NamedTuple):
    """The addresses of the processes that TF_CONFIG names, and the number of this one."""

    workers: list[str]
    rank: int


def read_cluster() -> Cluster:
    """Returns the cluster in the environment variable TF_CONFIG; without it, one that has no workers.

    Raises:
        UserError: TF_CONFIG is damaged.
    """
    if not (text := os.environ.get("TF_CONFIG", "")):
        return Cluster([], 0)
    try:
        config = json.loads(text)
        cluster, task = config.get("cluster", {}), config.get("task", {})
        workers = [*cluster.get("chief", []), *cluster.get("worker", [])]
        rank = int(task.get("index", 0)) + (len(cluster.get("chief", [])) if task.get("type") == "worker" else 0)
        if not all(isinstance(each, list) for each in cluster.values()):
            raise ValueError("addresses are a list")
        if not all(isinstance(each, str) for each in workers):
            raise ValueError("an address is a string")
        if len(cluster.get("chief", [])) > 1:
            raise ValueError("there are several chiefs")
        if workers and (task.get("type") not in ("chief", "worker") or not 0 <= rank < len(workers)):
            raise ValueError("the task is not one of the workers")
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise UserError(
            f"TF_CONFIG is {text!r}: {error}; it must look like "
            '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'
        ) from None
    return Cluster(workers, rank)


def end_with_launcher() -> None:
    """Makes this process get SIGTERM when the process that started it, with `LAUNCHER`, is killed. Only on Linux."""
    launcher = os.environ.pop(LAUNCHER, "")
    if launcher and _prctl:
        _prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)
        if os.getppid() != int(launcher):  # it was killed before
            sys.exit(128 + signal.SIGTERM)
