"""The processes of a training, as the environment variable TF_CONFIG names them."""

import json
import os
from typing import NamedTuple

from ..errors import UserError


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
