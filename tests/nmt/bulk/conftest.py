"""Runs `python -m nmt.bulk` in an environment that has Beam."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.nmt.bulk.toy import write_toy

ROOT = Path(__file__).parents[3]
PYTHON = os.environ.get("BULK_PYTHON")
collect_ignore = ["object_store.py"]  # imports Beam


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    return write_toy(tmp_path_factory.mktemp("toy") / "export")


@pytest.fixture
def start_bulk(tmp_path):
    """Starts a job in a session of its own; its standard output and error go to files."""
    if not PYTHON:
        pytest.skip("needs a Python with the extra bulk: BULK_PYTHON")
    started = []

    def start(*words, program=("-m", "nmt.bulk"), environment=(), **options):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "STORE": str(tmp_path),
            **dict(environment),
        }
        with (tmp_path / "said").open("w") as out, (tmp_path / "errors").open("w") as errors:
            process = subprocess.Popen(
                [PYTHON, *program, *map(str, words)],
                cwd=tmp_path,
                env=environment,
                stdout=out,
                stderr=errors,
                start_new_session=True,
                **options,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        process.wait()


@pytest.fixture
def bulk(start_bulk, tmp_path):
    """Runs a job; returns exit status, standard output and standard error."""

    def run(*words, **options):
        status = start_bulk(*words, **options).wait(timeout=600)
        return status, (tmp_path / "said").read_text(), (tmp_path / "errors").read_text()

    return run
