"""The routes of the service."""

import asyncio
import base64
import contextlib
import hashlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
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
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from . import rest
from .access import Access, Gate
from .batcher import SECONDS, Batcher
from .limits import Limits, Outbox, Refused, refusal
from .loaded_model import Arrays
from .store import Served, Store

_LOOK_EVERY = 1.0  # seconds between two looks for new versions
_LARGE = 10_000  # bytes of a request, or values of a response, that are handled in a thread
_READ_BEFORE_413 = (
    8  # times the limit; else the client would get a lost connection in place of the answer
)
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
_LEFT = Counter("nmt_clients_left", "Requests whose client left before the response")
_VERSION = Gauge("nmt_model_version", "Version of a model that is served", ("model",))
_log = logging.getLogger("serve")
Result = TypeVar("Result")


class Service:
    """The ASGI application of a store of models, which `Store.open` has loaded."""

    def __init__(self, store: Store, limits: Limits, access: Access):
        self._store = store
        self._limits = limits
        self._batcher = Batcher(limits)
        self._outbox = Outbox(limits.unread)
        routes = [
            Route("/", _page(), methods=["GET"]),
            Route("/healthz", JSONResponse({"status": "alive"}), methods=["GET"]),
            Route("/readyz", self._ready),
            Route("/metrics", self._show_metrics),
            Route("/v1/models", self._models),
        ]
        for path in ("/v1/models/{name}", "/v1/models/{name}/versions/{version}"):
            routes += [
                Route(f"{path}:{{method}}", self._predict, methods=["GET", "POST"]),
                Route(f"{path}/metadata", self._metadata),
                Route(path, self._status),
            ]
        handlers = {Refused: refusal, 404: _say_where, Exception: _say_failed}
        app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        self.app = Gate(app, access)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with self._batcher.running():
            watcher = asyncio.create_task(self._watch())
            yield
            watcher.cancel()

    async def _watch(self) -> None:
        seen = ""
        while True:
            _VERSION.clear()
            # A `Served` in this loop would keep a dropped model in memory until the next look.
            for name, version in {
                key: served.version for key, served in self._store.served.items()
            }.items():
                _VERSION.labels(name).set(version)
            await asyncio.sleep(_LOOK_EVERY)
            why = ""
            try:
                await asyncio.to_thread(self._store.refresh)
            except Exception as error:  # the folder may be back at the next look
                why = f"{type(error).__name__}: {error}"
                if why != seen:
                    _log.error("cannot look for new model versions: %s", why)
            seen = why

    async def _ready(self, _: Request) -> Response:
        ready = bool(self._store.served)
        return JSONResponse(
            {"status": "ready" if ready else "no model is loaded"}, 200 if ready else 503
        )

    async def _show_metrics(self, _: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

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
        spec = {
            "name": request.path_params["name"],
            "signature_name": "",
            "version": str(served.version),
        }
        return JSONResponse(
            {
                "model_spec": spec,
                "metadata": {"signature_def": {"signature_def": served.model.metadata}},
            }
        )

    async def _status(self, request: Request) -> Response:
        name = request.path_params["name"]
        version = request.path_params.get("version")
        states = {
            str(v): ("END", "UNKNOWN", why)
            for (n, v), why in self._store.broken.items()
            if n == name
        }
        if name in (served := self._store.served):
            number = str(served[name].version)
            why = states.pop(number, ("",))[-1]  # its files were changed to some that are refused
            states = {number: ("AVAILABLE", "OK", why), **states}
        shown = [
            _state(number, *state) for number, state in states.items() if version in (None, number)
        ]
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
        start = time.monotonic()
        label = ""
        status = 500
        rows = 0
        try:
            model = self._find(request).model
            label = request.path_params["name"]
            body = await self._read(request)
            prediction = await _aside(len(body), rest.parse, body, model)
            cost = await _aside(len(body), model.cost, prediction.signature, prediction.inputs)
            if cost > (most := self._limits.tokens):
                text = f"a sentence may have {most} tokens with its longest translation, one has {cost}; split it"
                raise Refused(400, f"{text}, or start the service with a larger --tokens")
            left = self._limits.deadline - (time.monotonic() - start)
            work = self._batcher.run(prediction.signature, prediction.inputs, prediction.rows)
            outputs = await self._until(work, request, left)
            values = sum(array.size for array in outputs.values())
            content = await _aside(
                values, rest.render, outputs, prediction.rows if prediction.by_row else None
            )
            response = self._outbox.response(content)
            status = 200
            rows = prediction.rows
            return response
        except Refused as refused:
            status = refused.status_code
            raise
        finally:
            _REQUESTS.labels(label, str(status)).inc()
            _ROWS.labels(label).inc(rows)
            _SECONDS.labels(label).observe(time.monotonic() - start)

    async def _read(self, request: Request) -> bytes:
        """Returns the body of a request, within the limits of size and time."""
        size = request.headers.get("content-length", "0")
        limit = self._limits.body
        known = int(size[:20]) if size.isascii() and size.isdecimal() else 0
        too_large = Refused(
            413, f"a request may have {limit} bytes; send several", {"Connection": "close"}
        )
        if known > limit * _READ_BEFORE_413 or (known > limit and "expect" in request.headers):
            raise too_large

        async def read() -> bytes:
            parts = []
            length = 0
            async for part in request.stream():
                length += len(part)
                if length > limit * _READ_BEFORE_413:
                    break
                if length <= limit:
                    parts.append(part)
            if length > limit:
                raise too_large
            return b"".join(parts)

        try:
            return await asyncio.wait_for(read(), self._limits.deadline)
        except ClientDisconnect:
            _LEFT.inc()
            raise Refused(499, "the client left") from None
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(
                408, "the body of the request did not arrive in time", {"Connection": "close"}
            ) from None

    async def _until(self, work: Coroutine, request: Request, seconds: float) -> Arrays:
        """Returns the outputs, or raises `Refused` if the time ends or the client leaves before they are there."""
        computing = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait(
                {computing, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if computing.done():
                return computing.result()
            if leaving.done():
                _LEFT.inc()
                raise Refused(499, "the client left")
            raise Refused(
                504,
                f"no result within {self._limits.deadline:g} seconds; send less, or try again later",
            )
        finally:
            for task in (computing, leaving):
                task.cancel()
            await asyncio.wait({computing, leaving})


async def _aside(size: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """Returns the result of a function.

    Something large is handled in a thread, so that other requests go on.
    """
    return await asyncio.to_thread(function, *arguments) if size > _LARGE else function(*arguments)


async def _left(request: Request) -> None:
    """Returns when the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _state(version: str, state: str, code: str, message: str) -> dict:
    return {
        "version": version,
        "state": state,
        "status": {"error_code": code, "error_message": message},
    }


async def _say_where(request: Request, refused: Refused) -> Response:
    """Says more than "Not Found", which a path gets that no route has."""
    known = refused.detail != "Not Found"
    return await refusal(
        request, refused if known else Refused(404, "there is no such path; see /v1/models")
    )


async def _say_failed(_: Request, error: Exception) -> Response:
    _log.error("a request failed: %r", error)
    return JSONResponse({"error": "the service failed; its log says why"}, 500)


def _page() -> Response:
    """Returns the page, with headers that let it run its own script and style, and nothing else."""
    page = Path(__file__).with_name("page.html").read_text("utf-8")

    def hashes(tag: str) -> str:
        texts = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        return " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(x.encode()).digest()).decode()}'"
            for x in texts
        )

    policy = (
        f"default-src 'none'; script-src {hashes('script')}; style-src {hashes('style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
    return HTMLResponse(page, headers=headers)
