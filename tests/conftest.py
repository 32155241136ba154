"""Setup of all tests, and a fixture that they share."""

import atexit
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# All tests and the commands that they start share a cache of XLA, because most of them compile the
# same small models.
if "TF_XLA_FLAGS" not in os.environ:
    compiled = tempfile.mkdtemp(prefix="xla-")
    os.environ["TF_XLA_FLAGS"] = f"--tf_xla_persistent_cache_directory={compiled}"
    atexit.register(shutil.rmtree, compiled, ignore_errors=True)

# The scans of the tests' small texts stay out of the user's cache.
if "NMT_TEXT_CACHE" not in os.environ:
    os.environ["NMT_TEXT_CACHE"] = tempfile.mkdtemp(prefix="texts-")
    atexit.register(shutil.rmtree, os.environ["NMT_TEXT_CACHE"], ignore_errors=True)

# Tests need no GPU, and a training would start a process for each.
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

# A background job ignores Ctrl-C, and the commands that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Starts the longest test first, so that the processes end at about the same time."""
    items.sort(key=lambda item: item.path.name != "test_patched_nmt.py")


@pytest.fixture(autouse=True)
def _same_initial_weights():
    """Keras takes the seeds of its initializers from `random`."""
    random.seed(0)


@pytest.fixture
def run_python(tmp_path):
    """Runs a script in a new interpreter in a temporary directory; returns the finished process."""

    def run(script, *arguments, **environment):
        return subprocess.run(
            [sys.executable, "-c", script, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run
