"""Batches of requests to a signature that takes as long as a test wants."""

import asyncio
import weakref

import numpy as np
import pytest

from nmt.serving.service.limits import Refused
from tests.nmt.serving.batching import Doubling, ask, with_batcher


@pytest.mark.parametrize(
    ("shape", "batch", "sizes"),
    [
        ((10,), 4, [4, 4, 2]),
        # By 128 bytes for each of its rows: 1,280, which three rows of 400 do not exceed.
        ((10, 100), 10, [3, 3, 3, 1]),
        ((3, 129), 4, [1, 1, 1]),  # a row that is larger than a batch
    ],
)
def test_a_request_larger_than_a_batch_is_computed_in_pieces(shape, batch, sizes):
    signature = Doubling(releases=9)
    numbers = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    inputs = {"numbers": numbers}
    found = with_batcher(lambda batcher: batcher.run(signature, inputs, shape[0]), batch=batch)
    np.testing.assert_array_equal(found["doubles"], 2 * numbers)
    assert signature.sizes == sizes


def test_others_are_computed_between_the_pieces_of_a_large_request():
    signature = Doubling()

    async def work(batcher):
        done = []

        async def call(name, rows):
            await batcher.run(signature, {"numbers": np.zeros(rows, np.int32)}, rows)
            done.append(name)

        calls = [asyncio.ensure_future(call("large", 10))]
        await asyncio.to_thread(signature.begun.acquire)
        calls += [asyncio.ensure_future(call(name, 1)) for name in ("first", "second")]
        await asyncio.sleep(0)
        signature.go.release(9)
        await asyncio.gather(*calls)
        return done

    assert with_batcher(work, batch=4) == ["first", "second", "large"]
    assert signature.sizes == [4, 2, 4, 2]


def test_a_batch_may_have_as_many_bytes_as_the_limit_and_no_more():
    """512 for four rows: one request of that size, and two of half of it, but not with another
    byte."""

    def sizes(*widths):
        signature = Doubling()

        async def work(batcher):
            calls = [ask(batcher, signature)]
            await asyncio.to_thread(signature.begun.acquire)
            for width in widths:
                rows = {"numbers": np.zeros((2, width), np.int8)}
                calls.append(asyncio.ensure_future(batcher.run(signature, rows, 2)))
            await asyncio.sleep(0)
            signature.go.release(9)
            await asyncio.gather(*calls)

        with_batcher(work, batch=4)
        return signature.sizes[1:]

    assert sizes(256) == [2]
    assert sizes(257) == [1, 1]
    assert sizes(128, 128) == [4]
    assert sizes(128, 129) == [2, 2]


def test_requests_of_different_signatures_are_not_joined():
    async def work(batcher):
        one = Doubling()
        other = Doubling()
        calls = [ask(batcher, one)]
        await asyncio.to_thread(one.begun.acquire)
        calls += [
            ask(batcher, signature, rows)
            for signature, rows in ((one, 1), (other, 2), (one, 3), (other, 4))
        ]
        await asyncio.sleep(0)
        for signature in (one, other):
            signature.go.release(9)
        found = await asyncio.gather(*calls)
        return one.sizes, other.sizes, [len(each["doubles"]) for each in found]

    assert with_batcher(work, batch=16) == ([1, 4], [6], [1, 1, 2, 3, 4])


def test_a_large_request_whose_outputs_have_no_rows_is_refused():
    class Summing(Doubling):
        def run(self, inputs):
            return {"sum": super().run(inputs)["doubles"].sum(keepdims=True)}

    signature = Summing(releases=9)
    numbers = {"numbers": np.arange(10)}
    assert with_batcher(lambda batcher: batcher.run(signature, numbers, 10))["sum"] == [90]
    with pytest.raises(Refused, match="at most 4 rows"):
        with_batcher(lambda batcher: batcher.run(signature, numbers, 10), batch=4)


def test_a_large_request_stops_when_its_client_leaves():
    signature = Doubling()

    async def work(batcher):
        large = ask(batcher, signature, 100)
        await asyncio.to_thread(signature.begun.acquire)
        large.cancel()
        await asyncio.wait([large])
        signature.go.release(2)  # the piece that is being computed, and the next request
        return await batcher.run(signature, {"numbers": np.array([21], np.int32)}, 1)

    assert with_batcher(work, batch=1)["doubles"].tolist() == [42]
    assert signature.sizes == [1, 1]


def test_a_signature_is_not_kept_when_nothing_is_computed():
    async def work(batcher):
        signature = Doubling(releases=1)
        await batcher.run(signature, {"numbers": np.array([1], np.int32)}, 1)
        kept = weakref.ref(signature)
        del signature
        await asyncio.sleep(0.1)
        return kept()

    assert with_batcher(work) is None


def test_requests_without_rows_take_places_in_the_queue():
    async def work(batcher):
        signature = Doubling(releases=9)
        nothing = {"numbers": np.zeros(0, np.int32)}
        calls = [batcher.run(signature, nothing, 0) for _ in range(5)]
        found = await asyncio.gather(*calls, return_exceptions=True)
        return [
            each.status_code if isinstance(each, Refused) else each["doubles"].tolist()
            for each in found
        ]

    assert with_batcher(work, queue=3) == [[], [], [], 429, 429]


def test_a_failed_batch_is_computed_one_by_one_for_the_callers_who_are_still_there():
    class Failing(Doubling):
        def run(self, inputs):
            found = super().run(inputs)
            if 13 in inputs["numbers"]:
                raise ValueError("no")
            return found

    signature = Failing(releases=1)

    async def work(batcher):
        await ask(batcher, signature)
        calls = [ask(batcher, signature) for _ in range(4)]
        wrong = {"numbers": np.array([13], np.int32)}
        calls.append(asyncio.ensure_future(batcher.run(signature, wrong, 1)))
        await asyncio.to_thread(signature.begun.acquire)
        await asyncio.to_thread(signature.begun.acquire)  # all are being computed together
        for call in calls[1:4]:
            call.cancel()
        await asyncio.sleep(0)
        signature.go.release(5)
        with pytest.raises(Refused):
            await calls[4]
        return await calls[0]

    assert with_batcher(work)["doubles"].tolist() == [0]
    assert signature.sizes == [1, 5, 1, 1]


def test_what_a_large_request_has_not_yet_put_into_the_queue_is_not_waited_for():
    """A worker whose batch had two rows waits for two, although more rows of a large request are
    still to come."""
    large = Doubling()
    small = Doubling(releases=9)

    async def work(batcher):
        begun = ask(batcher, large, 8)
        await asyncio.to_thread(large.begun.acquire)  # the first worker has its first piece
        await ask(batcher, small, 2)
        first = ask(batcher, small)
        await asyncio.sleep(0.1)
        await asyncio.gather(first, ask(batcher, small))
        large.go.release(2)
        await begun

    with_batcher(work, workers=2, batch=4, batch_wait=600.0)
    assert small.sizes == [2, 2]
