"""Services of tiny SavedModels, in processes of their own."""

import re
import time

import pytest

from tests.nmt.serving.toy import Client, write_toy


@pytest.fixture(scope="session")
def start_service(start):
    """Starts a service of a folder of models: `start_service(models, *options)` returns a client."""

    def begin(models, *options):
        log = models.parent / f"{models.name}.log"
        files = ("/dev/null", f"{models.name}.out", log.name)
        process = start(models.parent, ["serve", models, "--port", 0, *options], files)
        end = time.monotonic() + 200
        while not (found := re.search(r"http://\S+:(\d+)", log.read_text() if log.exists() else "")):
            assert process.is_alive() and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        client = Client(int(found[1]), process)
        client.log = log
        return client

    return begin


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    return write_toy(tmp_path_factory.mktemp("toy") / "1")
