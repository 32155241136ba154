"""Routes requests, and answers each within its limits."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from . import rest
from .access import Access, AccessMiddleware
from .batcher import SECONDS, Batcher
from .limits import CLOSE, Answer, Budget, Limits, Refused, queue_is_full, refused_response
from .loaded_model import Arrays, LoadedModel, describe
from .page import page
from .store import Served, Store

_LOOK_EVERY = 1.0  # seconds between two looks for new versions
_LARGE = 10_000  # bytes of a request, or values of a response, that are handled in a thread
_LONGEST_PAUSE = 0.05  # seconds
# A body that is refused is read to this many times the limit: the client gets the answer, no reset.
_READ_REFUSED = 8
disable_created_metrics()
# The label `model` is the name of a loaded model, or empty.
_REQUESTS = Counter("nmt_requests", "Requests to predict, by HTTP status", ("model", "status"))
_ROWS = Counter("nmt_rows", "Rows (sentences) in answered requests", ("model",))
_SECONDS = Histogram(
    "nmt_request_seconds",
    "Seconds from the headers of a request to its response",
    ("model",),
    buckets=SECONDS,
)
_VERSION = Gauge("nmt_model_version", "Version of a model that is served", ("model",))
_log = logging.getLogger("serve")
_request_log = logging.getLogger("serve.requests")
Result = TypeVar("Result")


class _Word(StringConvertor):
    """Matches a part of a path without colons, in whose number matching would be quadratic."""

    regex = "[^/:]+"


register_url_convertor("word", _Word())


class Service:
    """The ASGI application of a store of models, which `Store.open` has loaded."""

    def __init__(self, store: Store, limits: Limits, access: Access):
        self._store = store
        self._limits = limits
        self._batcher = Batcher(limits)
        self._bodies = Budget(limits.bodies)  # bytes that arrive, wait or are computed
        self._unread = Budget(limits.unread)
        # One thread: only one runs Python at a time, and each delays the event loop.
        self._large = ThreadPoolExecutor(1, thread_name_prefix="json")
        self._counting = ThreadPoolExecutor(1, thread_name_prefix="tokens")
        routes = [
            Route("/", page(), methods=["GET"]),
            Route("/healthz", JSONResponse({"status": "alive"}), methods=["GET"]),
            Route("/readyz", self._ready),
            Route("/metrics", _show_metrics),
            Route("/v1/models", self._models),
        ]
        for path in ("/v1/models/{name:word}", "/v1/models/{name:word}/versions/{version:word}"):
            routes += [
                Route(f"{path}:{{method:word}}", self._predict, methods=["GET", "POST"]),
                Route(f"{path}/metadata", self._metadata),
                Route(path, self._status),
            ]
        app = Starlette(
            routes=routes,
            exception_handlers={Refused: refused_response, Exception: _say_failed},
            lifespan=self._lifespan,
        )
        self.app = AccessMiddleware(app, access)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with self._batcher.running():
            watcher = asyncio.create_task(self._watch())
            yield
            watcher.cancel()

    async def _watch(self) -> None:
        seen = ""
        while True:
            # A `Served` in this loop would keep a dropped model in memory until the next look.
            versions = {name: served.version for name, served in self._store.served.items()}
            _VERSION.clear()
            for name, version in versions.items():
                _VERSION.labels(name).set(version)
            await asyncio.sleep(_LOOK_EVERY)
            try:
                await asyncio.to_thread(self._store.refresh)
                seen = ""
            except Exception as error:  # the folder may be back at the next look
                if repr(error) != seen:
                    _log.error("cannot look for new model versions: %r", error)
                seen = repr(error)

    async def _ready(self, _: Request) -> Response:
        if self._store.served:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "no model is loaded"}, 503)

    async def _models(self, _: Request) -> Response:
        models = [
            {
                "name": name,
                "version": str(served.version),
                "signatures": sorted(served.model.signatures),
                "card": served.model.card,
            }
            for name, served in sorted(self._store.served.items())
        ]
        return JSONResponse({"models": models})

    async def _metadata(self, request: Request) -> Response:
        served = self._find(request)
        signatures = {name: describe(each) for name, each in served.model.signatures.items()}
        return JSONResponse(
            {
                "model_spec": {
                    "name": request.path_params["name"],
                    "signature_name": "",
                    "version": str(served.version),
                },
                "metadata": {"signature_def": {"signature_def": signatures}},
            }
        )

    async def _status(self, request: Request) -> Response:
        name = request.path_params["name"]
        version = request.path_params.get("version")
        served = self._store.served.get(name)
        reasons = {served.version: ""} if served else {}
        # The files of the served version may have changed to some that are refused.
        reasons |= {v: why for (model, v), why in self._store.broken.items() if model == name}
        shown = []
        for number, why in reasons.items():
            if version in (None, str(number)):
                is_served = served is not None and number == served.version
                state, code = ("AVAILABLE", "OK") if is_served else ("END", "UNKNOWN")
                status = {"error_code": code, "error_message": why}
                shown.append({"version": str(number), "state": state, "status": status})
        if not shown:
            self._find(request)  # raises
        return JSONResponse({"model_version_status": shown})

    def _find(self, request: Request) -> Served:
        return self._store.find(request.path_params["name"], request.path_params.get("version"))

    async def _predict(self, request: Request) -> Response:
        if request.path_params["method"] != "predict":
            raise Refused(400, "this service has only the method :predict")
        if request.method != "POST":
            raise Refused(405, "predict needs POST", {"Allow": "POST"})
        end = time.monotonic() + self._limits.deadline
        label = ""
        status = 500
        try:
            model = self._find(request).model
            label = request.path_params["name"]
            # Small bodies are not counted: the number of connections limits them.
            with self._bodies.share(free=_LARGE) as take:
                body = await self._body(request, take)
                response, rows = await self._answer(request, body, model, end)
            status = 200
            _ROWS.labels(label).inc(rows)
            return response
        except Refused as refused:
            status = refused.status_code
            raise
        finally:
            _REQUESTS.labels(label, str(status)).inc()
            _SECONDS.labels(label).observe(time.monotonic() - end + self._limits.deadline)

    async def _answer(
        self, request: Request, body: bytes, model: LoadedModel, end: float
    ) -> tuple[Response, int]:
        """Returns the response to a request, and its number of rows."""
        prediction = await self._in_thread_if_large(
            len(body), rest.parse, body, model, self._limits
        )
        signature = prediction.signature
        if len(body) > _LARGE:
            cost = await self._in_thread_if_large(
                len(body), model.cost, signature, prediction.inputs
            )
        else:  # TensorFlow may be busy with other inputs, so the event loop does not wait for it
            cost = await asyncio.get_running_loop().run_in_executor(
                self._counting, model.cost, signature, prediction.inputs
            )
        most = self._limits.tokens
        if cost > most:
            raise Refused(
                400,
                f"a sentence may have {most} tokens with its longest translation, one has {cost}; "
                "split it, or start the service with a larger --tokens",
            )
        work = self._batcher.run(signature, prediction.inputs, prediction.rows)
        outputs = await self._compute_in_time(work, request, end - time.monotonic())
        values = sum(array.size for array in outputs.values())
        rows = prediction.rows if prediction.by_row else None
        content = await self._in_thread_if_large(values, rest.render, outputs, rows)
        return Answer(content, self._unread), prediction.rows

    async def _body(self, request: Request, take: Callable[[int], None]) -> bytes:
        """Returns the body of a request, unpacked, within the limits of size and time."""
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("gzip", "identity"):
            raise Refused(
                415,
                f"Content-Encoding {coding[:100]!r} is unknown; send gzip or no such header",
            )
        known = int(request.headers.get("content-length", 0))  # h11 has checked it
        limit = self._limits.body
        if known > limit * _READ_REFUSED or (known > limit and "expect" in request.headers):
            raise rest.too_large(limit)
        try:
            body = await asyncio.wait_for(self._read(request, take), self._limits.deadline)
        except ClientDisconnect:
            raise Refused(499, "the client left") from None
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(408, "the body of the request did not arrive in time", CLOSE) from None
        if coding == "gzip":
            body = await self._in_thread_if_large(limit, rest.unpack, body, limit)
            take(len(body))
        return body

    async def _read(self, request: Request, take: Callable[[int], None]) -> bytes:
        parts = []
        length = 0
        limit = self._limits.body
        is_full = False
        async for part in request.stream():
            length += len(part)
            if length > limit * _READ_REFUSED:
                break
            if is_full:
                continue
            try:  # a body that is too large asks for too much, and so gives back what it has
                take(len(part) if length <= limit else 2 * self._bodies.most)
                parts.append(part)
            except Refused:
                parts.clear()
                is_full = True
        if length > limit:
            raise rest.too_large(limit)
        if is_full:
            raise queue_is_full()
        return b"".join(parts)

    async def _compute_in_time(self, work: Coroutine, request: Request, seconds: float) -> Arrays:
        """Returns the outputs; raises `Refused` if the time ends or the client leaves before."""
        computing = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(_until_client_leaves(request))
        both = {computing, leaving}
        try:
            await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if computing.done():
                return computing.result()
            if leaving.done():
                raise Refused(499, "the client left")
            raise Refused(
                504,
                f"no result within {self._limits.deadline:g} seconds; send less, or try again "
                "later",
            )
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both)

    async def _in_thread_if_large(
        self, size: int, function: Callable[..., Result], *arguments: Any
    ) -> Result:
        """Returns the result of a function. Large work is done in a thread, so others go on."""
        if size <= _LARGE:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(
            self._large, _then_pause, function, *arguments
        )


def _then_pause(function: Callable[..., Result], *arguments: Any) -> Result:
    """Returns the result of a function after a pause as long as its work: the event loop, which
    stands still whenever it lets this thread run, gets half of the time.
    """
    begun = time.thread_time()
    try:
        return function(*arguments)
    finally:
        time.sleep(min(_LONGEST_PAUSE, time.thread_time() - begun))


async def _until_client_leaves(request: Request) -> None:
    """Returns when the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _show_metrics(_: Request) -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _say_failed(_: Request, error: Exception) -> Response:
    _request_log.error("a request failed: %r", error)
    return JSONResponse({"error": "the service failed; its log says why"}, 500)
