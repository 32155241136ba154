"""Trains one model in several processes, each on its share of every batch (data parallelism).

Every process has all weights and makes the same updates. An update adds up the gradients of all
processes before it clips them. So without dropout and random segmentations, the number of processes
changes the weights by rounding only. The first process, the chief, validates and writes.
"""

import contextlib
import functools
import hashlib
import json
import os
import re
import signal
from collections.abc import Iterator, Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from ..errors import UserError
from .interruption import restored_handlers

# Variable of the environment: descriptor of a socket that reserves the port of a process.
HELD_PORT = "NMT_HELD_PORT"
_ADDRESS = re.compile(r"\S+:\d{1,5}")
_LONGEST = 300  # characters of TensorFlow's reason that a message quotes


class Replicas:
    """The processes of a training."""

    def __init__(self, strategy: tf.distribute.Strategy | None = None, rank: int = 0):
        self._strategy = strategy
        self.rank = rank
        self.is_chief = rank == 0  # it validates and writes
        self.count = strategy.num_replicas_in_sync if strategy else 1
        # One function for each number of tensors: TensorFlow would warn if all shared one.
        self._sums = functools.cache(
            lambda tensors: tf.function(self._sum_of_all, autograph=False, reduce_retracing=True)
        )

    def sum(self, values):
        """Adds up a structure of tensors over all processes.

        The rows of `tf.IndexedSlices` are concatenated.
        """
        if not self._strategy:
            return values
        with _explained():
            return self._sums(len(tf.nest.flatten(values)))(values)

    def any(self, flag: bool) -> bool:
        """Returns whether the flag is set in any process.

        All processes wait here for each other.
        """
        return flag if self.count == 1 else float(self.sum(tf.constant(float(flag)))) > 0

    def final_barrier(self) -> None:
        """Waits until all processes are here. Afterwards this process may end, and the others do
        not fail.

        A process can pass a barrier and end before another one has seen that all are there, and the
        connection breaks. So there are two barriers: after the first, all is written, so a break in
        the second does not matter.
        """
        self.any(False)
        with contextlib.suppress(UserError):
            self.any(False)

    def broadcast(self, variables: Sequence[keras.Variable]) -> None:
        """Copies the chief's variables to all other processes."""
        if self.count > 1:
            for variable in variables:  # one by one: a second copy of all of them may not fit a GPU
                value = tf.cast(tf.reshape(variable.value, [-1]), tf.float64)
                value = self.sum(value if self.is_chief else tf.zeros_like(value))
                variable.assign(tf.cast(tf.reshape(value, variable.shape), variable.dtype))

    def from_chief(self, values: Sequence[float]) -> list[float]:
        """Returns the chief's values.

        The other processes pass a list of the same length, which is ignored.
        """
        mine = tf.constant(values if self.is_chief else [0.0] * len(values), tf.float64)
        return self.sum(mine).numpy().tolist()

    def require_same(self, values: Mapping[str, object]) -> None:
        """Compares values that all processes must share."""
        rows = np.zeros([self.count, len(values)], np.int64)
        for column, value in enumerate(values.values()):
            digest = hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode())
            rows[self.rank, column] = int.from_bytes(digest.digest()[:7], "big")
        rows = self.sum(tf.constant(rows)).numpy()
        columns = zip(values, rows.T, strict=True)
        differing = [name for name, column in columns if len(set(column)) > 1]
        if differing:
            raise UserError(
                f"the {self.count} processes of this training differ in {', '.join(differing)}; "
                "start all with the same command, files and code"
            )

    def _sum_of_all(self, values):
        def reduce(values):
            # The copies have a device.
            values = tf.nest.map_structure(tf.identity, values, expand_composites=True)
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, values)

        return self._strategy.run(reduce, (values,))


def read_cluster() -> tuple[list[str], int]:
    """Returns the addresses of the processes that TF_CONFIG names, and the rank of this one."""
    text = os.environ.get("TF_CONFIG", "")
    if not text:
        return [], 0
    try:
        config = json.loads(text)
        cluster = config.get("cluster", {})
        task = config.get("task", {})
        chiefs = cluster.get("chief", [])
        workers = [*chiefs, *cluster.get("worker", [])]
        kind = task.get("type")
        rank = int(task.get("index", 0)) + (len(chiefs) if kind == "worker" else 0)
        wrong = [each for each in workers if not _ADDRESS.fullmatch(each)]
        if wrong:
            raise ValueError(f"{wrong[0][:100]} is no address")
        if workers and (kind not in ("chief", "worker") or not 0 <= rank < len(workers)):
            raise ValueError("the task is not one of the workers")
    except (AttributeError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise UserError(
            f"TF_CONFIG is {text!r}: {error}; it must look like "
            '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}'
        ) from None
    return workers, rank


def connect() -> Replicas:
    """Connects the processes that the environment variable TF_CONFIG names. Call it before
    TensorFlow uses a device.

    Reference: https://www.tensorflow.org/guide/distributed_training#tf_config
    """
    workers, rank = read_cluster()
    if len(workers) < 2:
        return Replicas()
    held = os.environ.pop(HELD_PORT, "")
    # TensorFlow waits for the other processes without running handlers in Python, and replaces the
    # one of SIGTERM. So Ctrl-C ends the process at once, unless it is ignored. Afterwards, handlers
    # are as before.
    with _explained(), restored_handlers(signal.SIGTERM, signal.SIGINT) as handlers:
        if signal.SIGINT in handlers:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    if held:
        os.close(int(held))  # TensorFlow listens there now
    if strategy.num_replicas_in_sync != len(workers):
        raise UserError(
            f"{len(workers)} processes have {strategy.num_replicas_in_sync} devices; start one "
            "process for each device and name its GPU in CUDA_VISIBLE_DEVICES"
        )
    return Replicas(strategy, rank)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Replaces an error of the connection by one line with advice."""
    try:
        yield
    except tf.errors.ResourceExhaustedError:  # of memory; the general message is right
        raise
    except tf.errors.OpError as error:
        _, _, reason = error.message.rpartition("aborted by: ")
        reason = " ".join(re.split("Additional GRPC|The error could be", reason)[0].split())
        raise UserError(
            "another process of this training has ended or cannot be reached; its last line of "
            "output may say why; start all with the same command to resume the training "
            f"({type(error).__name__}: {reason[:_LONGEST]})"
        ) from None
