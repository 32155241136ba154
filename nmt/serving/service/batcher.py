"""Joins requests into batches, behind a bounded queue."""

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from prometheus_client import Gauge, Histogram

from .limits import Limits, Refused
from .loaded_model import Arrays, Signature

_LONGEST_WAIT = 0.1  # seconds to wait for callers after a long batch
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_BATCH_SECONDS = Histogram("nmt_batch_seconds", "Seconds in which a batch was computed", buckets=SECONDS)
_BATCH_ROWS = Histogram("nmt_batch_rows", "Rows of the computed batches", buckets=[2**i for i in range(10)])
_WAITING = Gauge("nmt_rows_waiting", "Rows in the queue")
_RUNNING = Gauge("nmt_rows_running", "Rows being computed")
_log = logging.getLogger("serve")


class _Job:
    """A request in the queue.

    Attributes:
        sizes: Bytes of each row.
        left: Places in the queue of what nobody has taken yet; a request without rows takes one place.
        taken: Rows that were taken.
        whole: Whether its rows must be computed together.
        pieces: Outputs of the rows that were computed.
        result: Future of all outputs.
    """

    def __init__(self, signature: Signature, inputs: Arrays, rows: int):
        self.signature, self.inputs, self.rows = signature, inputs, rows
        self.whole = not signature.joinable
        self.sizes = np.zeros(rows, int) if self.whole else sum(_sizes(array) for array in inputs.values())
        self.left, self.taken = max(rows, 1), 0
        self.pieces: list[Arrays] = []
        self.result = asyncio.get_running_loop().create_future()

    def fitting(self, rows: int, size: int) -> int:
        """Returns how many of its next rows have together at most this many rows and bytes."""
        if self.whole:
            return self.rows
        sizes = np.cumsum(self.sizes[self.taken : self.taken + rows])
        return int(np.searchsorted(sizes, size, "right"))

    def take(self, rows: int) -> "_Piece":
        """Takes its next rows."""
        self.left -= max(rows, 1)
        self.taken += rows
        return _Piece(self, self.taken - rows, self.taken)


class _Piece(NamedTuple):
    """Rows of a request that are computed together."""

    job: _Job
    start: int
    end: int

    @property
    def places(self) -> int:
        return max(self.end - self.start, 1)

    @property
    def inputs(self) -> Arrays:
        whole = self.end - self.start == self.job.rows
        return self.job.inputs if whole else {name: x[self.start : self.end] for name, x in self.job.inputs.items()}


class Batcher:
    """Computes requests, those of one signature together.

    A request that is larger than a batch is computed in pieces. Each piece is a batch of its own, and the rest goes
    back to the end of the queue, so that others do not wait for all of it.

    A worker expects that the callers of the last batch send another request when they have their response. It waits
    until the queue holds the rows of that batch plus those that waited when it ended, at most a full batch, so that all
    callers share the next one. It waits no longer than `limits.batch_wait` or 1/20 of the last batch's time (at most
    `_LONGEST_WAIT`), whichever is longer, after that batch.
    """

    def __init__(self, limits: Limits):
        self._limits = limits
        self._waiting: deque[_Job] = deque()
        self._rows_waiting = self._rows_running = self._bytes = self._expected = 0
        self._wait_until = 0.0  # when the expected rows are waited for no longer
        self._arrived = asyncio.Condition()
        self._threads = ThreadPoolExecutor(limits.workers, thread_name_prefix="model")
        self._workers: list[asyncio.Task] = []

    def start(self) -> None:
        """Starts the workers in the running event loop."""
        self._workers = [asyncio.create_task(self._work()) for _ in range(self._limits.workers)]

    async def stop(self) -> None:
        """Ends the workers; requests that still wait get no result."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, signature: Signature, inputs: Arrays, rows: int) -> Arrays:
        """Returns the outputs for the inputs. A caller that is cancelled gives its place in the queue back.

        Raises:
            Refused: The queue is full, the request has too many rows, or the model refuses it.
        """
        if rows > (most := min(self._limits.rows, self._limits.queue)):
            raise Refused(413, f"a request may have {most} rows, this one has {rows}; send several")
        job, size = _Job(signature, inputs, rows), sum(int(_sizes(array).sum()) for array in inputs.values())
        is_full = self._rows_waiting + self._rows_running + job.left > self._limits.queue
        if is_full or (self._bytes and self._bytes + size > self._limits.queue_bytes):
            raise Refused(429, "the queue is full; try again later", {"Retry-After": "1"})
        self._waiting.append(job)
        self._count(waiting=job.left)
        self._bytes += size
        try:
            async with self._arrived:
                self._arrived.notify_all()
            return await job.result
        finally:
            self._bytes -= size
            self._count(waiting=-job.left)
            job.left = 0
            if job in self._waiting:
                self._waiting.remove(job)

    def _count(self, waiting: int = 0, running: int = 0) -> None:
        self._rows_waiting += waiting
        self._rows_running += running
        _WAITING.set(self._rows_waiting)
        _RUNNING.set(self._rows_running)

    async def _work(self) -> None:
        while True:
            await self._until_enough_wait()
            pieces = self._take()
            places = sum(piece.places for piece in pieces)
            self._count(waiting=-places, running=places)
            _BATCH_ROWS.observe(sum(piece.end - piece.start for piece in pieces))
            begun = time.monotonic()
            try:
                await self._compute(pieces)
            finally:
                self._count(running=-places)
            self._expected = places + self._rows_waiting
            ended = time.monotonic()
            self._wait_until = ended + max(self._limits.batch_wait, min(_LONGEST_WAIT, (ended - begun) / 20))
            del pieces  # else they keep their model in memory until the next batch

    async def _until_enough_wait(self) -> None:
        """Waits for a job, then shortly for as many rows as are expected."""
        async with self._arrived:
            while True:
                await self._arrived.wait_for(lambda: self._waiting)
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    left = max(0.0, self._wait_until - time.monotonic())
                    await asyncio.wait_for(self._arrived.wait_for(self._enough_wait), left)
                if self._waiting:
                    return

    def _enough_wait(self) -> bool:
        return self._rows_waiting >= min(self._expected, self._limits.batch)

    def _take(self) -> list[_Piece]:
        """Takes the next rows of the first job, and of each other job all rows if they fit into the same batch."""
        first = self._waiting.popleft()
        rows, size = self._limits.batch, self._limits.batch_bytes
        pieces = [first.take(min(max(first.fitting(rows, size), 1), first.rows))]
        if first.whole or first.left:
            return pieces
        for job in list(self._waiting):
            rows = self._limits.batch - sum(piece.places for piece in pieces)
            room = size - sum(int(piece.job.sizes[piece.start : piece.end].sum()) for piece in pieces)
            left = job.rows - job.taken
            joins = job.signature is first.signature and not job.whole
            if joins and job.left <= rows and job.fitting(rows, room) == left:
                self._waiting.remove(job)
                pieces.append(job.take(left))
        return pieces

    async def _compute(self, pieces: list[_Piece]) -> None:
        loop = asyncio.get_running_loop()
        try:
            with _BATCH_SECONDS.time():
                results = await loop.run_in_executor(self._threads, _run, pieces)
        except Exception as error:  # whatever a model does, the service goes on
            if len(pieces) > 1:  # the mistake of one caller must not fail the others
                for piece in pieces:
                    if not piece.job.result.done():  # else its caller has left
                        await self._compute([piece])
                return
            results = [_refusal(error)]
        for piece, result in zip(pieces, results, strict=True):
            if not piece.job.result.done():  # else its caller has left
                self._keep(piece, result)

    def _keep(self, piece: _Piece, result: Arrays | Refused) -> None:
        """Keeps the outputs of a piece. What is left of its request goes back to the end of the queue."""
        job, rows = piece.job, piece.end - piece.start
        if isinstance(result, Refused):
            return job.result.set_exception(result)
        if rows < job.rows and any(len(array) != rows for array in result.values()):
            # The outputs cannot be put together, so all rows are computed at once.
            self._count(waiting=job.rows - job.left)
            job.whole, job.taken, job.left, job.pieces = True, 0, job.rows, []
        else:
            job.pieces.append(result)
        if job.left:
            return self._waiting.append(job)
        several = len(job.pieces) > 1
        joined = {name: np.concatenate([each[name] for each in job.pieces]) for name in result} if several else result
        job.result.set_result(joined)


def _run(pieces: list[_Piece]) -> list[Arrays]:
    """Computes pieces together."""
    signature = pieces[0].job.signature
    if len(pieces) == 1:
        return [signature.run(pieces[0].inputs)]
    joined = signature.run(
        {name: np.concatenate([piece.inputs[name] for piece in pieces]) for name in signature.inputs}
    )
    ends = np.cumsum([piece.end - piece.start for piece in pieces])
    if any(len(array) != ends[-1] for array in joined.values()):
        raise ValueError("the outputs of a batch do not have as many rows as its inputs")
    parts = {name: np.split(array, ends[:-1]) for name, array in joined.items()}
    return [{name: part[i] for name, part in parts.items()} for i in range(len(pieces))]


def _sizes(array: np.ndarray) -> np.ndarray:
    """Returns the bytes of each row of an input, or of all of it if it has no rows."""
    is_text = array.dtype == object
    sizes = np.asarray(np.frompyfunc(len, 1, 1)(array), int) if is_text else np.full(array.shape, array.itemsize)
    return sizes.reshape(len(array), math.prod(array.shape[1:])).sum(1) if array.ndim else sizes[np.newaxis]


def _refusal(error: Exception) -> Refused:
    if isinstance(error, tf.errors.InvalidArgumentError):
        return Refused(400, f"the model refuses the inputs: {_reason(error)}")
    if isinstance(error, (tf.errors.ResourceExhaustedError, tf.errors.UnavailableError)):
        return Refused(503, "the model does not have enough memory or is busy; try again later", {"Retry-After": "1"})
    _log.error("a model failed: %s: %s", type(error).__name__, str(error)[:1000])
    return Refused(500, "the model failed; the log of the service says why")


def _reason(error: tf.errors.InvalidArgumentError) -> str:
    """Returns the message of an assertion in the graph, without the places in the graph that follow it."""
    text = error.message.partition("assertion failed: [")[2].partition("]")[0]
    return text or next((line for line in error.message.splitlines() if line and "Graph execution" not in line), "")
