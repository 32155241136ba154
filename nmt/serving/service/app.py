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

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from . import rest
from .access import Access, Gate
from .answers import Outbox, Refused, refusal
from .batcher import Batcher
from .connection import Connection
from .limits import Limits
from .loaded_model import Arrays
from .metrics import Metrics
from .store import Store

_LOOK_EVERY = 1.0  # seconds between two looks for new versions
_LARGE = 10_000  # bytes of a request, or values of a response, that are handled in a thread
_READ_BEFORE_413 = 8  # times the limit; else the client would get a lost connection in place of the answer
_TARGET = re.compile(r"(?P<name>[^/:]+)(/versions/(?P<version>[0-9]{1,18}))?(?P<what>/metadata|:[a-z]+)?")
_log = logging.getLogger("serve")
Result = TypeVar("Result")


class Service:
    """The ASGI application of a store of models.

    Args:
        store: The models, loaded by `Store.open`.
        limits: The limits.
        access: Who may call it.
        connections: The open connections, by the address of the client.
    """

    def __init__(self, store: Store, limits: Limits, access: Access, connections: dict[tuple, Connection]):
        self._store, self._limits, self._metrics = store, limits, Metrics()
        self._batcher: Batcher | None = None
        self._outbox = Outbox(limits.unread)
        self._noted: set[str] = set()  # models with a version in the metrics
        self._page = Path(__file__).with_name("page.html").read_bytes()
        app = Starlette(
            routes=[
                Route("/", self._show_page),
                Route("/healthz", self._health),
                Route("/readyz", self._ready),
                Route("/metrics", self._show_metrics),
                Route("/v1/models", self._models),
                Route("/v1/models/{target:path}", self._model, methods=["GET", "POST"]),
            ],
            exception_handlers={Refused: refusal, HTTPException: _say_http, Exception: _say_failed},
            lifespan=self._lifespan,
        )
        self.app = Gate(app, access, connections)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        self._batcher = Batcher(self._limits, self._metrics)
        self._batcher.start()
        watcher = asyncio.create_task(self._watch())
        yield
        watcher.cancel()
        await self._batcher.stop()

    async def _watch(self) -> None:
        seen = ""
        while True:
            self._note_versions()
            await asyncio.sleep(_LOOK_EVERY)
            why = ""
            try:
                await asyncio.to_thread(self._store.refresh)
            except Exception as error:  # the folder may be back at the next look
                why = f"{type(error).__name__}: {error}"
                if why != seen:
                    _log.error("cannot look for new model versions: %s", why)
            seen = why

    def _note_versions(self) -> None:
        versions = {name: served.version for name, served in self._store.served.items()}
        for name in self._noted - set(versions):
            self._metrics.version.remove(name)
        for name, version in versions.items():
            self._metrics.version.labels(name).set(version)
        self._noted = set(versions)

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def _ready(self, _: Request) -> Response:
        ready = bool(self._store.served)
        return JSONResponse({"status": "ready" if ready else "no model is loaded"}, 200 if ready else 503)

    async def _show_metrics(self, _: Request) -> Response:
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def _show_page(self, _: Request) -> Response:
        return HTMLResponse(self._page, headers=_page_headers(self._page))

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

    async def _model(self, request: Request) -> Response:
        target = _TARGET.fullmatch(request.path_params["target"])
        if target is None:
            raise Refused(404, "there is no such path; a model is at /v1/models/NAME[/versions/N]")
        name, what = target["name"], target["what"]
        version = int(target["version"]) if target["version"] else None
        if what == ":predict":
            if request.method != "POST":
                raise Refused(405, "predict needs POST", {"Allow": "POST"})
            return await self._predict(request, name, version)
        if what and what != "/metadata":
            raise Refused(400, "this service has only the method :predict")
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "this path needs GET", {"Allow": "GET, HEAD"})
        served = self._store.find(name, version)
        number = str(served.version)
        if what:
            spec = {"name": name, "signature_name": "", "version": number}
            return JSONResponse(
                {"model_spec": spec, "metadata": {"signature_def": {"signature_def": served.model.metadata}}}
            )
        broken = {str(v): why for (n, v), why in self._store.broken.items() if n == name}
        states = [_status(number, "AVAILABLE", "OK", broken.pop(number, ""))]  # else its changed files are refused
        states += [_status(v, "END", "UNKNOWN", why) for v, why in broken.items()]
        return JSONResponse({"model_version_status": states})

    async def _predict(self, request: Request, name: str, version: int | None) -> Response:
        start, label, status, rows = time.monotonic(), "", 500, 0
        try:
            model = self._store.find(name, version).model
            label = name
            body = await self._read(request)
            prediction = await _aside(len(body), rest.parse, body, model)
            left = self._limits.deadline - (time.monotonic() - start)
            work = self._batcher.run(prediction.signature, prediction.inputs, prediction.rows)
            outputs = await self._until(work, request, left)
            values = sum(array.size for array in outputs.values())
            content = await _aside(values, rest.render, outputs, prediction.rows if prediction.by_row else None)
            response = self._outbox.response(content)
            status, rows = 200, prediction.rows
            return response
        except Refused as refused:
            status = refused.status
            raise
        finally:
            self._metrics.requests.labels(label, str(status)).inc()
            self._metrics.rows.labels(label).inc(rows)
            self._metrics.seconds.labels(label).observe(time.monotonic() - start)

    async def _read(self, request: Request) -> bytes:
        """Returns the body of a request, within the limits of size and time."""
        size, limit = request.headers.get("content-length", "0"), self._limits.body
        known = int(size[:20]) if size.isascii() and size.isdecimal() else 0
        too_large = Refused(413, f"a request may have {limit} bytes; send several", {"Connection": "close"})
        if known > limit * _READ_BEFORE_413 or (known > limit and "expect" in request.headers):
            raise too_large

        async def read() -> bytes:
            parts, length = [], 0
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
            self._metrics.left.inc()
            raise Refused(499, "the client left") from None
        except (asyncio.TimeoutError, TimeoutError):
            raise Refused(408, "the body of the request did not arrive in time", {"Connection": "close"}) from None

    async def _until(self, work: Coroutine, request: Request, seconds: float) -> Arrays:
        """Returns the outputs, or raises `Refused` if the time ends or the client leaves before they are there."""
        computing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
        try:
            await asyncio.wait({computing, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if computing.done():
                return computing.result()
            if leaving.done():
                self._metrics.left.inc()
                raise Refused(499, "the client left")
            raise Refused(504, f"no result within {self._limits.deadline:g} seconds; send less, or try again later")
        finally:
            for task in (computing, leaving):
                task.cancel()
            await asyncio.wait({computing, leaving})


async def _aside(size: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """Returns the result of a function. Something large is handled in a thread, so that other requests go on."""
    return await asyncio.to_thread(function, *arguments) if size > _LARGE else function(*arguments)


async def _left(request: Request) -> None:
    """Returns when the client closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _status(version: str, state: str, code: str, message: str) -> dict:
    return {"version": version, "state": state, "status": {"error_code": code, "error_message": message}}


async def _say_http(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _say_failed(_: Request, error: Exception) -> Response:
    _log.error("a request failed: %r", error)
    return JSONResponse({"error": "the service failed; its log says why"}, 500)


def _page_headers(page: bytes) -> dict[str, str]:
    """Returns headers that let the page run its own script and style, and nothing else."""
    hashes = {
        tag: " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'"
            for text in re.findall(rb"<%b>(.*?)</%b>" % (tag.encode(), tag.encode()), page, re.DOTALL)
        )
        for tag in ("script", "style")
    }
    policy = (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
