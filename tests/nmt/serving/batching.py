"""A signature that doubles, and a batcher that runs while a test does."""

import asyncio
import threading

import numpy as np
import tensorflow as tf

from nmt.serving.service.batcher import Batcher
from nmt.serving.service.limits import Limits


class Doubling:
    """A signature that doubles numbers, a call at each release of `go`."""

    def __init__(self, joinable=True, releases=0):
        self.inputs = {"numbers": tf.TensorSpec([None], tf.int32)}
        self.joinable = joinable
        self.has_rows = True
        self.go = threading.Semaphore(releases)
        self.begun = threading.Semaphore(0)
        self.sizes = []

    def run(self, inputs):
        self.sizes.append(len(inputs["numbers"]))
        self.begun.release()
        assert self.go.acquire(timeout=60)
        return {"doubles": 2 * inputs["numbers"]}


def with_batcher(work, **limits):
    """Runs `await work(batcher)`."""

    async def run():
        batcher = Batcher(Limits(**limits))
        async with batcher.running():
            return await asyncio.wait_for(work(batcher), 60)

    return asyncio.run(run())


def ask(batcher, signature, rows=1):
    """Begins a request and returns its future."""
    return asyncio.ensure_future(
        batcher.run(signature, {"numbers": np.zeros(rows, np.int32)}, rows)
    )
