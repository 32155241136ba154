"""Joins requests into batches, behind a bounded queue."""

import asyncio
import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import tensorflow as tf
from prometheus_client import Gauge, Histogram

from ...errors import sentence_of
from .limits import Budget, Limits, Refused
from .loaded_model import Arrays, ServedFunction

_LONGEST_WAIT = 0.1  # seconds to wait for callers after a long batch
SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_BATCH_SECONDS = Histogram(
    "nmt_batch_seconds", "Seconds in which a batch was computed", buckets=SECONDS
)
_BATCH_ROWS = Histogram(
    "nmt_batch_rows", "Rows of the computed batches", buckets=[2**i for i in range(10)]
)
_WAITING = Gauge("nmt_rows_waiting", "Rows in the queue")
_RUNNING = Gauge("nmt_rows_running", "Rows being computed")
_log = logging.getLogger("serve.requests")


@dataclass(eq=False)
class _Piece:
    """Rows of a request that are computed together."""

    signature: ServedFunction
    inputs: Arrays
    rows: int
    size: int  # bytes of the inputs, if the signature is joinable
    result: asyncio.Future = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def places(self) -> int:
        """Places in the queue; a piece without rows takes one."""
        return max(self.rows, 1)


class Batcher:
    """Computes requests, those of one signature together.

    A request that is larger than a batch is computed in pieces. Each goes to the end of the queue
    when the one before is computed, so that others do not wait for all of them.

    The idle workers share what waits; none takes more than a batch. A worker expects that the
    callers of its last batch send another request when they have their response. It waits for its
    share of what these and the queue then hold, no longer than `limits.batch_wait` or 1/20 of the
    last batch's time (at most `_LONGEST_WAIT`), whichever is longer.
    """

    def __init__(self, limits: Limits):
        self._limits = limits
        self._places = Budget(limits.queue)  # of requests without a result
        self._waiting: deque[_Piece] = deque()
        self._running = 0  # places
        self._expected = 0
        self._idle = limits.workers
        self._wait_until = 0.0  # when the expected rows are waited for no longer
        self._arrived = asyncio.Condition()
        self._threads = ThreadPoolExecutor(limits.workers, thread_name_prefix="model")
        _WAITING.set_function(lambda: max(0, self._places.used - self._running))
        _RUNNING.set_function(lambda: self._running)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Computes requests within this context. Those that still wait at its end get no result."""
        workers = [asyncio.create_task(self._work()) for _ in range(self._limits.workers)]
        try:
            yield
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, signature: ServedFunction, inputs: Arrays, rows: int) -> Arrays:
        """Returns the outputs for the inputs. A caller that is cancelled gives its place in the
        queue back.

        Raises:
            Refused: The queue is full, or the model refuses the request.
        """
        pieces = self._cut(signature, inputs, rows)
        found: list[Arrays] = []
        with self._places.share() as take:
            take(sum(piece.places for piece in pieces))
            for piece in pieces:
                found.append(await self._result(piece))
                if piece.rows < rows and not _has_rows(found[-1], piece.rows):
                    raise Refused(413, f"this signature takes at most {piece.rows} rows")
        return found[0] if len(found) == 1 else {name: _joined(name, found) for name in found[0]}

    def _cut(self, signature: ServedFunction, inputs: Arrays, rows: int) -> list[_Piece]:
        """Returns the pieces of a request.

        Each fits into a batch, or is a row that is larger than one.
        """
        if not signature.joinable:
            return [_Piece(signature, inputs, rows, 0)]
        pieces: list[_Piece] = []
        start = 0
        sizes = sum(_sizes(array) for array in inputs.values())
        while start < rows or not pieces:
            total = np.cumsum(sizes[start : start + self._limits.batch])
            fitting = int(np.searchsorted(total, self._limits.batch_bytes, "right"))
            end = min(rows, start + max(1, fitting))
            part = {name: array[start:end] for name, array in inputs.items()}
            pieces.append(_Piece(signature, part, end - start, int(sizes[start:end].sum())))
            start = end
        return pieces

    async def _result(self, piece: _Piece) -> Arrays:
        """Puts a piece into the queue and returns its outputs."""
        self._waiting.append(piece)
        try:
            async with self._arrived:
                self._arrived.notify_all()
            return await piece.result
        finally:
            with contextlib.suppress(ValueError):  # a worker has taken it
                self._waiting.remove(piece)

    async def _work(self) -> None:
        while True:
            await self._until_enough_wait()
            pieces = self._take()
            places = sum(piece.places for piece in pieces)
            self._running += places
            self._idle -= 1
            _BATCH_ROWS.observe(sum(piece.rows for piece in pieces))
            begun = time.monotonic()
            await self._compute(pieces)
            self._idle += 1
            self._running -= places
            self._expected = self._share(places)
            wait = min(_LONGEST_WAIT, (time.monotonic() - begun) / 20)
            self._wait_until = time.monotonic() + max(self._limits.batch_wait, wait)
            del pieces  # else they keep their model in memory until the next batch

    async def _until_enough_wait(self) -> None:
        """Waits for a piece, then shortly for as many rows as are expected."""
        async with self._arrived:
            while True:
                await self._arrived.wait_for(lambda: self._waiting)
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    left = max(0.0, self._wait_until - time.monotonic())
                    enough = self._arrived.wait_for(lambda: self._rows_in_queue() >= self._expected)
                    await asyncio.wait_for(enough, left)
                if self._waiting:
                    return

    def _share(self, coming: int = 0) -> int:
        """Returns an idle worker's share of the rows that wait and those coming, at most a
        batch."""
        return min(-(-(self._rows_in_queue() + coming) // self._idle), self._limits.batch)

    def _rows_in_queue(self) -> int:
        """Returns the rows that can be taken now: of a request in pieces, those of one piece."""
        return sum(piece.places for piece in self._waiting)

    def _take(self) -> list[_Piece]:
        """Takes the first piece, and the others of its signature that fit into the same batch."""
        most = self._share()
        first = self._waiting.popleft()
        pieces = [first]
        rows = first.places
        size = first.size
        for piece in list(self._waiting) if first.signature.joinable else ():
            fits = size + piece.size <= self._limits.batch_bytes
            if piece.signature is first.signature and fits and rows + piece.places <= most:
                self._waiting.remove(piece)
                pieces.append(piece)
                rows += piece.places
                size += piece.size
        return pieces

    async def _compute(self, pieces: list[_Piece]) -> None:
        loop = asyncio.get_running_loop()
        try:
            with _BATCH_SECONDS.time():
                results = await loop.run_in_executor(self._threads, _run, pieces)
        except Exception as error:  # whatever a model does, the service goes on
            if len(pieces) > 1:  # the mistake of one caller must not fail the others
                for piece in pieces:
                    if not piece.result.done():  # else its caller has left
                        await self._compute([piece])
                return
            if not pieces[0].result.done():
                pieces[0].result.set_exception(_refused_by_model(error))
            return
        for piece, result in zip(pieces, results, strict=True):
            if not piece.result.done():  # else its caller has left
                piece.result.set_result(result)


def _run(pieces: list[_Piece]) -> list[Arrays]:
    """Computes pieces together."""
    signature = pieces[0].signature
    if len(pieces) == 1:
        return [signature.run(pieces[0].inputs)]
    inputs = [piece.inputs for piece in pieces]
    joined = signature.run({name: _joined(name, inputs) for name in signature.inputs})
    ends = np.cumsum([piece.rows for piece in pieces])
    if not _has_rows(joined, ends[-1]):
        raise ValueError("the outputs of a batch do not have as many rows as its inputs")
    parts = [np.split(array, ends[:-1]) for array in joined.values()]
    return [dict(zip(joined, each, strict=True)) for each in zip(*parts, strict=True)]


def _joined(name: str, parts: list[Arrays]) -> np.ndarray:
    return np.concatenate([part[name] for part in parts])


def _has_rows(outputs: Arrays, rows: int) -> bool:
    """Returns whether all outputs have this many rows."""
    return all(len(array) == rows for array in outputs.values())


def _sizes(array: np.ndarray) -> np.ndarray:
    """Returns the bytes of each row of an input."""
    if array.dtype == object:
        sizes = np.asarray(np.frompyfunc(len, 1, 1)(array), int)
    else:
        sizes = np.full(array.shape, array.itemsize)
    return sizes.reshape(len(array), math.prod(array.shape[1:])).sum(1)


def _refused_by_model(error: Exception) -> Refused:
    if isinstance(error, tf.errors.InvalidArgumentError):
        # The message of an assertion in the graph, without the traceback that follows it.
        said = error.message.partition("assertion failed: [")[2].partition("]")[0]
        return Refused(400, f"the model refuses the inputs: {said or sentence_of(error.message)}")
    if isinstance(error, (tf.errors.ResourceExhaustedError, tf.errors.UnavailableError)):
        return Refused(
            503,
            "the model does not have enough memory or is busy; try again later",
            {"Retry-After": "1"},
        )
    _log.error("a model failed: %s: %s", type(error).__name__, str(error)[:1000])
    return Refused(500, "the model failed; the log of the service says why")
