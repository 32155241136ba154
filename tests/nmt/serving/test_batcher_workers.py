"""How the workers of a batcher share what waits."""

import asyncio

from tests.nmt.serving.batching import Doubling, ask, with_batcher


def test_two_workers_share_the_rows_that_wait():
    signature = Doubling()

    async def work(batcher):
        calls = [ask(batcher, signature) for _ in range(8)]
        for _ in range(2):
            assert await asyncio.to_thread(signature.begun.acquire, timeout=30)
        signature.go.release(2)
        await asyncio.gather(*calls)

    with_batcher(work, workers=2, batch=64)
    assert signature.sizes == [4, 4]


def test_nothing_is_left_to_a_worker_that_is_busy():
    long = Doubling()
    short = Doubling(releases=9)

    async def work(batcher):
        begun = ask(batcher, long)
        assert await asyncio.to_thread(long.begun.acquire, timeout=30)
        await asyncio.gather(*(ask(batcher, short) for _ in range(8)))
        long.go.release()
        await begun

    with_batcher(work, workers=2, batch=64)
    assert short.sizes == [8]


def test_a_worker_waits_for_the_callers_of_its_last_batch_alone():
    """The rows of another worker, whose callers still wait for it, are not expected."""
    long = Doubling()
    short = Doubling(releases=9)

    async def work(batcher):
        begun = ask(batcher, long, 8)
        await asyncio.to_thread(long.begun.acquire)
        for _ in range(2):
            await ask(batcher, short)
        long.go.release()
        await begun

    with_batcher(work, workers=2, batch=8, batch_wait=600.0)
    assert short.sizes == [1, 1]


def test_a_worker_waits_for_its_last_callers_and_what_waits_already():
    signature = Doubling()

    async def work(batcher):
        first = ask(batcher, signature, 2)
        await asyncio.to_thread(signature.begun.acquire)
        calls = [ask(batcher, signature, 3)]
        signature.go.release(2)
        await first
        for _ in range(2):
            await asyncio.sleep(0.1)  # the worker waits
            calls.append(ask(batcher, signature))
        await asyncio.gather(*calls)

    with_batcher(work, batch=8, batch_wait=600.0)
    assert signature.sizes == [2, 5]


def test_a_worker_waits_only_for_its_share():
    signature = Doubling(releases=9)

    async def work(batcher):
        await ask(batcher, signature, 4)
        await asyncio.gather(ask(batcher, signature), ask(batcher, signature))

    with_batcher(work, workers=2, batch=8, batch_wait=600.0)
    assert signature.sizes == [4, 1, 1]


def test_a_worker_waits_longer_after_a_long_batch():
    """For a twentieth of the time of the batch."""
    signature = Doubling()

    async def work(batcher):
        first = ask(batcher, signature, 2)
        await asyncio.sleep(1)
        signature.go.release(3)
        await first
        calls = [ask(batcher, signature)]
        for _ in range(100):  # a worker that does not wait would take the first of both alone
            await asyncio.sleep(0)
        await asyncio.gather(*calls, ask(batcher, signature))

    with_batcher(work, batch_wait=0.0)
    assert signature.sizes == [2, 2]
