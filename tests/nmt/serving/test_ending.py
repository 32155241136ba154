"""How signals end the service, while requests go on."""

import contextlib
import http.client
import os
import shutil
import signal
import threading
import time

import pytest

from tests.nmt.serving.toy import until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_requests_finish(toy, start_service, tmp_path, number):
    shutil.copytree(toy, tmp_path / "models" / "toy" / "1")
    service = start_service(tmp_path / "models")
    found = []
    request = {"signature_name": "slow", "inputs": [15_000]}
    caller = threading.Thread(target=lambda: found.append(service.predict(request)))
    caller.start()
    until(lambda: service.metric("nmt_rows_running"))
    os.kill(service.process.pid, number)
    caller.join()
    assert found == [(200, {"outputs": [15_000]})]
    service.process.join(60)
    assert service.process.exitcode == 0
    assert "Traceback" not in service.log.read_text()


def test_a_second_ctrl_c_ends_the_service_at_once_without_a_traceback(toy, start_service, tmp_path):
    shutil.copytree(toy, tmp_path / "models" / "toy" / "1")
    service = start_service(tmp_path / "models")
    found = []

    def call():
        try:
            found.append(service.predict({"signature_name": "slow", "inputs": [100_000]}))
        except (ConnectionError, http.client.HTTPException):
            found.append("no answer")

    caller = threading.Thread(target=call)
    caller.start()
    until(lambda: service.metric("nmt_rows_running"))
    os.kill(service.process.pid, signal.SIGINT)
    time.sleep(0.5)
    assert service.process.is_alive()
    os.kill(service.process.pid, signal.SIGINT)
    service.process.join(3)
    assert service.process.exitcode == 130
    caller.join()
    assert found == ["no answer"]
    assert "Traceback" not in service.log.read_text()
    assert service.log.read_text().count("a second Ctrl-C") == 1


def test_a_long_batch_does_not_delay_the_end(toy, start_service, tmp_path):
    shutil.copytree(toy, tmp_path / "models" / "toy" / "1")
    service = start_service(tmp_path / "models", "--timeout", 1)
    found = []
    hours = {"signature_name": "slow", "inputs": [10**9]}
    caller = threading.Thread(target=lambda: found.append(service.predict(hours)[0]))
    caller.start()
    until(lambda: service.metric("nmt_rows_running"))
    os.kill(service.process.pid, signal.SIGTERM)
    caller.join()
    assert found == [504]
    service.process.join(30)
    assert service.process.exitcode == 0


def test_after_sigkill_under_load_the_service_starts_again(toy, start_service, tmp_path):
    """The folder of models is as before: the service writes nothing."""
    models = tmp_path / "models"
    shutil.copytree(toy, models / "toy" / "1")
    files = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    service = start_service(models)

    def call():
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            service.predict({"signature_name": "slow", "inputs": [10**9]})

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    until(lambda: service.metric("nmt_rows_running"))
    os.kill(service.process.pid, signal.SIGKILL)
    for caller in callers:
        caller.join(30)
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


def test_a_signal_before_the_first_request_ends_the_service(toy, start, tmp_path):
    shutil.copytree(toy, tmp_path / "models" / "toy" / "1")
    process = start(tmp_path, ["serve", "models", "--port", 0], first=EARLY)
    process.join(60)
    assert process.exitcode == 0
    assert "serving models" in (tmp_path / "errors").read_text()
