"""Who may call the service, and how the ends of requests are found."""

import json
import shutil
import socket

import pytest

from nmt.errors import UserError
from nmt.serving.service.access import read_key

PREDICT = "/v1/models/toy:predict"
BODY = b'{"inputs": ["a"]}'
NEXT = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


@pytest.fixture(scope="module")
def models(toy, tmp_path_factory):
    models = tmp_path_factory.mktemp("access") / "models"
    shutil.copytree(toy, models / "toy" / "1")
    return models


@pytest.fixture(scope="module")
def service(models, start_service):
    return start_service(models, "--allowed_hosts", "translate.example:8501", "other.example.")


def request(*lines, body=BODY, start=b"POST /v1/models/toy:predict HTTP/1.1"):
    head = [start, b"Content-Type: application/json", *lines]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def exchange(service, data):
    """Returns all that comes back until the service closes the connection, which it must."""
    found = b""
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(data)
        while part := connection.recv(65536):
            found += part
    return found


LENGTH = b"Content-Length: %d" % len(BODY)
CHUNKS = b"11\r\n" + BODY + b"\r\n0\r\n\r\n"
IN_CHUNKS = (b"Host: localhost", CHUNKED.strip())
AMBIGUOUS = {
    "both": request(b"Host: localhost", LENGTH, CHUNKED.strip(), body=CHUNKS),
    "both, length first": request(
        b"Host: localhost", CHUNKED.strip(), b"Content-Length: 0", body=CHUNKS
    ),
    "chunked in HTTP/1.0": request(
        CHUNKED.strip(), body=CHUNKS, start=b"POST /v1/models/toy:predict HTTP/1.0"
    ),
    **{
        f"chunked in HTTP/{version}": request(
            b"Host: localhost",
            CHUNKED.strip(),
            body=CHUNKS,
            start=b"POST /v1/models/toy:predict HTTP/%b" % version.encode(),
        )
        for version in ("0.9", "1.2", "2.0", "3.0")
    },
    "two lengths": request(b"Host: localhost", LENGTH, b"Content-Length: 1"),
    "list of lengths": request(b"Host: localhost", b"Content-Length: 17, 18"),
    "signed length": request(b"Host: localhost", b"Content-Length: +17"),
    "space before the colon": request(b"Host: localhost", b"Content-Length : 17"),
    "space before the first header": request(LENGTH, b"Host: localhost").replace(
        b"\r\n", b"\r\n ", 1
    ),
    "not chunked last": request(
        b"Host: localhost", b"Transfer-Encoding: chunked, identity", body=CHUNKS
    ),
    "unknown coding": request(b"Host: localhost", b"Transfer-Encoding: xchunked", body=CHUNKS),
    "two hosts": request(b"Host: localhost", b"Host: localhost", LENGTH),
    "no host": request(LENGTH),
    "absolute form": request(
        b"Host: localhost", LENGTH, start=b"POST http://localhost/v1/models/toy:predict HTTP/1.1"
    ),
    "bare CR": request(b"Host: localhost\rX: a", LENGTH),
    "NUL": request(b"Host: localhost", b"X: a\0b", LENGTH),
    "size of a chunk with a sign": request(
        b"Host: localhost", CHUNKED.strip(), body=b"+11\r\n" + BODY + b"\r\n0\r\n\r\n"
    ),
    "chunk longer than its size": request(
        b"Host: localhost", CHUNKED.strip(), body=b"10\r\n" + BODY + b"\r\n0\r\n\r\n"
    ),
}


@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_a_request_that_can_be_read_in_two_ways_is_refused_and_nothing_after_it_is_answered(
    service, data
):
    found = exchange(service, data + NEXT)
    assert found.startswith(b"HTTP/1.1 400 ")
    assert found.count(b"HTTP/1.1 ") == 1
    assert b"alive" not in found
    assert b"connection: close" in found.lower()


@pytest.mark.parametrize(
    "data",
    [
        request(b"Host: localhost", LENGTH),
        request(*IN_CHUNKS, body=CHUNKS),
        request(b"Host: localhost", LENGTH, LENGTH),  # h11 takes equal lengths, as RFC 9112 allows
        request(
            b"Host: localhost", b"X: a\r\n folded", LENGTH
        ),  # and a folded line, in which it replaces the fold
        request(b"Host: localhost", LENGTH).replace(
            b"\r\n", b"\n"
        ),  # and lines that end with LF alone
    ],
)
def test_requests_one_after_the_other_are_answered_in_order(service, data):
    first, second, third = exchange(service, data + data + NEXT).split(b"HTTP/1.1 200 ")[1:]
    assert b'"A!"' in first and b'"A!"' in second
    assert b"alive" in third


@pytest.mark.parametrize(
    "host, status",
    [
        ("localhost", 200),
        ("LOCALHOST:8501", 200),
        ("mine.localhost", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8501", 200),
        ("10.1.2.3", 200),  # a name that another site controls is never an address
        ("translate.example:443", 200),
        ("Other.Example.", 200),
        ("localhost.:8501", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("evil-localhost", 403),
        ("127.0.0.1.evil.example", 403),
        ("translate.example.evil.example", 403),
        ("localhost@evil.example", 403),
        ("localhost evil.example", 403),
        ("", 403),
    ],
)
@pytest.mark.parametrize("path", [PREDICT, "/", "/v1/models"])
def test_only_known_hosts_are_answered(service, host, status, path):
    method, body = ("POST", BODY) if path == PREDICT else ("GET", None)
    found, _, body = service.request(method, path, body, {"Host": host})
    assert found == status
    if status == 403:
        assert "--allowed_hosts" in json.loads(body)["error"]


def test_any_host_and_any_type_can_be_allowed(models, start_service, tmp_path):
    (tmp_path / "any").symlink_to(models)
    service = start_service(tmp_path / "any", "--allowed_hosts", "*", "--any_content_type")
    status, _, _ = service.request(
        "POST", PREDICT, BODY, {"Host": "a.example", "Content-Type": "text/plain"}
    )
    assert status == 200


@pytest.mark.parametrize(
    "given, status",
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=application/json", 415),
        ("application/jsonp", 415),
        ("", 415),
    ],
)
def test_a_type_that_any_page_can_send_is_refused(service, given, status):
    found, _, body = service.request("POST", PREDICT, BODY, {"Content-Type": given})
    assert found == status
    if status == 415:
        assert "Content-Type: application/json" in json.loads(body)["error"]


KEYS = [
    ("Bearer 0123456789abcdef", 200),
    ("bearer 0123456789abcdef", 200),  # RFC 9110: schemes have no case
    ("Bearer 0123456789abcdeg", 401),
    ("Bearer 0123456789ABCDEF", 401),
    ("Basic 0123456789abcdef", 401),
    ("0123456789abcdef", 401),
    ("Bearer", 401),
    ("", 401),
]


def test_with_a_key_only_its_owners_are_answered(models, start_service, tmp_path):
    (tmp_path / "key").write_text("0123456789abcdef\n")
    (tmp_path / "keyed").symlink_to(models)
    service = start_service(tmp_path / "keyed", "--api_key_file", tmp_path / "key")
    for path in (PREDICT, "/v1/models", "/v1/models/toy", "/metrics"):
        method, body = ("POST", BODY) if path == PREDICT else ("GET", None)
        for given, status in KEYS:
            found, headers, _ = service.request(method, path, body, {"Authorization": given})
            assert (path, found) == (path, status)
            assert headers.get("www-authenticate") == (None if status == 200 else "Bearer")
    for path in ("/", "/healthz", "/readyz"):
        assert service.request("GET", path)[0] == 200
    assert "0123456789abcdef" not in service.log.read_text()


@pytest.mark.parametrize(
    "content", [b"", b"fifteen-letters", b"two words, long ones", "schlüssel-schlüssel".encode()]
)
def test_an_unusable_key_is_refused(tmp_path, content):
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(UserError, match=r"the key file .*key "):
        read_key(tmp_path / "key")


def test_the_command_refuses_an_unusable_key(run, models, tmp_path):
    (tmp_path / "key").write_bytes(b"short")
    status, _, said = run("serve", models, "--api_key_file", "key")
    assert (status, said.count("\n"), "the key file key " in said) == (2, 1, True)
