"""Checks who calls the service: host, key, content type and framing of each request."""

import contextlib
import hmac
import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import UserError
from .connection import Connection
from .limits import CLOSE, Refused, refused_response

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(:[0-9]*)?")
_HEALTH = ("/healthz", "/readyz")  # paths that are always answered
_OPEN = ("/", *_HEALTH)  # paths that need no key


@dataclass(frozen=True)
class Access:
    """Says who may call the service.

    Attributes:
        hosts: Names of the service, besides `localhost` and all IP addresses; `*` stands for any. A
            page of another site can make its own name point to the service's address. The browser
            of its reader then sends that name.
        any_content_type: Whether POST needs no `Content-Type: application/json`. A page of another
            site can send other types without asking the service first.
        key: What `Authorization: Bearer KEY` must hold, if anything.
    """

    hosts: Collection[str] = ()
    any_content_type: bool = False
    key: str | None = None


def read_key(path: Path) -> str:
    """Returns the key in a file."""
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if len(text) < 16 or not re.fullmatch(r"[!-~]+", text):
        raise UserError(
            f"the key file {path} must hold one word of at least 16 ASCII characters; "
            "`openssl rand -hex 32` makes one"
        )
    return text


class AccessMiddleware:
    """Passes on the requests that may be answered, and refuses the others."""

    def __init__(self, app: ASGIApp, access: Access):
        self._app = app
        self._access = access
        self._hosts = {_name(host) for host in access.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        connection: Connection = scope["state"]["connection"]

        async def send_if_open(message: Message) -> None:
            await connection.until_open()
            await send(message)

        with connection.request():
            try:
                self._check(scope, Headers(scope=scope))
                if connection.connection_limit.is_reached and scope["path"] not in _HEALTH:
                    raise Refused(
                        503,
                        "too many requests are in progress; try again later",
                        CLOSE | {"Retry-After": "1"},
                    )
            except Refused as refused:
                return await (await refused_response(None, refused))(scope, receive, send_if_open)
            await self._app(scope, receive, send_if_open)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Raises `Refused` unless the request may be answered."""
        has_one_end = "content-length" not in headers and scope["http_version"] == "1.1"
        is_chunked = "transfer-encoding" in headers
        if (is_chunked and not has_one_end) or not scope["raw_path"].startswith(b"/"):
            # A proxy in front may take such a request for another one, or for two.
            raise Refused(
                400,
                "the length or the target of the request can be read in two ways; send only one",
                CLOSE,
            )
        host = headers.get("host")
        if host is not None and not self._knows(host):
            raise Refused(
                403,
                f"this service does not answer for the host {host[:100]!r}; --allowed_hosts names "
                "more",
                CLOSE,
            )
        scheme, _, given = headers.get("authorization", "").partition(" ")
        brought = given.strip().encode() if scheme.lower() == "bearer" else b""
        key = self._access.key
        if key and scope["path"] not in _OPEN and not hmac.compare_digest(brought, key.encode()):
            raise Refused(
                401,
                "this service needs the header Authorization: Bearer KEY, with its key",
                {"WWW-Authenticate": "Bearer"},
            )
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        is_json = kind == "application/json" or self._access.any_content_type
        if scope["method"] == "POST" and not is_json:
            raise Refused(
                415,
                "POST needs the header Content-Type: application/json, or a service with "
                "--any_content_type",
            )

    def _knows(self, host: str) -> bool:
        """Returns whether a Host header names this service."""
        name = _name(host)
        if name is None:
            return "*" in self._hosts
        with contextlib.suppress(ValueError):  # it is not an address
            ipaddress.ip_address(name.strip("[]"))
            return True
        is_local = name == "localhost" or name.endswith(".localhost")
        return is_local or not self._hosts.isdisjoint((name, "*"))


def _name(host: str) -> str | None:
    """Returns the name in a host, without its port and a final dot, or `None` if it has none."""
    found = _HOST.fullmatch(host.strip().lower())
    return found[1].rstrip(".") if found else None
