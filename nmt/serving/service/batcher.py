"""Joins requests into batches, behind a bounded queue."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import tensorflow as tf

from .limits import Limits, Refused
from .loaded_model import Arrays, Signature
from .metrics import Metrics

_LONGEST_WAIT = 0.1  # seconds to wait for callers after a long batch
_log = logging.getLogger("serve")


class _Job:
    """A request in the queue."""

    def __init__(self, signature: Signature, inputs: Arrays, rows: int):
        self.signature, self.inputs, self.rows = signature, inputs, rows
        self.places = max(rows, 1)  # in the queue; a request without rows takes one too
        self.result = asyncio.get_running_loop().create_future()


class Batcher:
    """Computes requests, those of one signature together. One that is larger than a batch is computed in pieces.

    A worker expects that the callers of the last batch send another request when they have their response. It waits
    until the queue holds the rows of that batch plus those that waited when it ended, at most a full batch, so that all
    callers share the next one. It waits no longer than `limits.batch_wait` or 1/20 of the last batch's time (at most
    `_LONGEST_WAIT`), whichever is longer, after that batch.
    """

    def __init__(self, limits: Limits, metrics: Metrics):
        self._limits, self._metrics = limits, metrics
        self._waiting: deque[_Job] = deque()
        self._rows_waiting = self._rows_running = self._expected = 0
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
        job = _Job(signature, inputs, rows)
        if self._rows_waiting + self._rows_running + job.places > self._limits.queue:
            raise Refused(429, "the queue is full; try again later", {"Retry-After": "1"})
        self._waiting.append(job)
        self._count(waiting=job.places)
        try:
            async with self._arrived:
                self._arrived.notify_all()
            return await job.result
        finally:
            if job in self._waiting:
                self._waiting.remove(job)
                self._count(waiting=-job.places)

    def _count(self, waiting: int = 0, running: int = 0) -> None:
        self._rows_waiting += waiting
        self._rows_running += running
        self._metrics.waiting.set(self._rows_waiting)
        self._metrics.running.set(self._rows_running)

    async def _work(self) -> None:
        while True:
            jobs = self._take(await self._next())
            places = sum(job.places for job in jobs)
            self._count(waiting=-places, running=places)
            self._metrics.batch_rows.observe(sum(job.rows for job in jobs))
            begun = time.monotonic()
            try:
                await self._compute(jobs)
            finally:
                self._count(running=-places)
            self._expected = places + self._rows_waiting
            ended = time.monotonic()
            self._wait_until = ended + max(self._limits.batch_wait, min(_LONGEST_WAIT, (ended - begun) / 20))
            del jobs  # else they keep their model in memory until the next batch

    async def _next(self) -> _Job:
        """Waits for a job, then shortly for as many rows as are expected; returns the first job."""
        async with self._arrived:
            while True:
                await self._arrived.wait_for(lambda: self._waiting)
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    left = max(0.0, self._wait_until - time.monotonic())
                    await asyncio.wait_for(self._arrived.wait_for(self._enough_wait), left)
                if self._waiting:
                    return self._waiting[0]

    def _enough_wait(self) -> bool:
        return self._rows_waiting >= min(self._expected, self._limits.batch)

    def _take(self, first: _Job) -> list[_Job]:
        """Takes the first job out of the queue, and with it those that fit into its batch."""
        jobs, room = [], max(self._limits.batch, first.places)
        for job in list(self._waiting) if first.signature.joinable else [first]:
            if job.signature is first.signature and job.places <= room:
                self._waiting.remove(job)
                jobs.append(job)
                room -= job.places
        return jobs

    async def _compute(self, jobs: list[_Job]) -> None:
        loop = asyncio.get_running_loop()
        try:
            with self._metrics.model_seconds.time():
                results = await loop.run_in_executor(self._threads, _run, jobs, self._limits.batch)
        except Exception as error:  # whatever a model does, the service goes on
            if len(jobs) > 1:  # the mistake of one caller must not fail the others
                for job in jobs:
                    if not job.result.done():  # else its caller has left
                        await self._compute([job])
                return
            results = [_refusal(error)]
        for job, result in zip(jobs, results, strict=True):
            if not job.result.done():  # else its caller has left
                job.result.set_exception(result) if isinstance(result, Refused) else job.result.set_result(result)


def _run(jobs: list[_Job], batch: int) -> list[Arrays]:
    if len(jobs) > 1:
        return _run_together(jobs[0].signature, jobs)
    (job,) = jobs
    large = job.rows > batch and job.signature.joinable
    return [_run_in_pieces(job, batch) if large else job.signature.run(job.inputs)]


def _run_in_pieces(job: _Job, size: int) -> Arrays:
    """Computes a job, `size` rows at a time, until nobody waits for the result."""
    pieces = []
    for start in range(0, job.rows, size):
        if job.result.done():  # its caller has left
            return {}
        rows = min(size, job.rows - start)
        piece = job.signature.run({name: array[start : start + rows] for name, array in job.inputs.items()})
        if any(len(array) != rows for array in piece.values()):  # the outputs have no rows to be concatenated
            return job.signature.run(job.inputs)
        pieces.append(piece)
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _run_together(signature: Signature, jobs: list[_Job]) -> list[Arrays]:
    joined = signature.run({name: np.concatenate([job.inputs[name] for job in jobs]) for name in signature.inputs})
    ends = np.cumsum([job.rows for job in jobs])
    if any(len(array) != ends[-1] for array in joined.values()):
        raise ValueError("the outputs of a batch do not have as many rows as its inputs")
    pieces = {name: np.split(array, ends[:-1]) for name, array in joined.items()}
    return [{name: piece[i] for name, piece in pieces.items()} for i in range(len(jobs))]


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
