"""How signals end the service, while requests go on."""

import contextlib
import http.client
import os
import signal
import threading
import time

import pytest

from tests.nmt.serving.toy import until

HOURS = 10**9


@contextlib.contextmanager
def slow_requests(service, steps, count=1):
    """Sends requests of so many steps; yields the list of their answers, None if none came."""
    found = []

    def call():
        try:
            found.append(service.predict({"signature_name": "slow", "inputs": [steps]}))
        except (ConnectionError, http.client.HTTPException):
            found.append(None)

    callers = [threading.Thread(target=call) for _ in range(count)]
    for caller in callers:
        caller.start()
    until(lambda: service.metric("nmt_rows_running"))
    yield found
    for caller in callers:
        caller.join()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_requests_finish(serve_toy, tmp_path, number):
    service = serve_toy(tmp_path)
    with slow_requests(service, 5_000) as found:
        os.kill(service.process.pid, number)
    assert found == [(200, {"outputs": [5_000]})]
    service.process.join(60)
    assert service.process.exitcode == 0
    assert "Traceback" not in service.log.read_text()


def test_a_second_ctrl_c_ends_the_service_at_once_without_a_traceback(serve_toy, tmp_path):
    service = serve_toy(tmp_path)
    with slow_requests(service, HOURS) as found:
        os.kill(service.process.pid, signal.SIGINT)
        time.sleep(0.5)
        assert service.process.is_alive()
        os.kill(service.process.pid, signal.SIGINT)
    service.process.join(60)
    assert (service.process.exitcode, found) == (130, [None])
    assert "Traceback" not in service.log.read_text()
    assert service.log.read_text().count("a second Ctrl-C") == 1


def test_a_long_batch_does_not_delay_the_end(serve_toy, tmp_path):
    service = serve_toy(tmp_path, "--timeout", 1)
    with slow_requests(service, HOURS) as found:
        os.kill(service.process.pid, signal.SIGTERM)
    assert found[0][0] == 504
    service.process.join(60)
    assert service.process.exitcode == 0


def test_after_sigkill_under_load_the_service_starts_again(models, start_service, tmp_path):
    """The folder of models is as before: the service writes nothing."""
    files = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    service = start_service(models)
    with slow_requests(service, HOURS, count=8):
        os.kill(service.process.pid, signal.SIGKILL)
    service.log.unlink()
    assert start_service(models).predict({"inputs": ["a"]})[0] == 200
    now = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert [(path, now[path]) for path, _ in files] == files
    assert {path.suffix for path in now.keys() - dict(files).keys()} <= {".log", ".out"}


EARLY = """
import signal, uvicorn

class Server(uvicorn.Server):
    def run(self, sockets):
        signal.raise_signal(signal.SIGTERM)
        super().run(sockets)

uvicorn.Server = Server
"""


def test_a_signal_before_the_first_request_ends_the_service(models, start, tmp_path):
    process = start(tmp_path, ["serve", "models", "--port", 0], first=EARLY)
    process.join(60)
    assert process.exitcode == 0
    assert "serving models" in (tmp_path / "errors").read_text()
