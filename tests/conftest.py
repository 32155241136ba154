"""What every test file shares."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# All tests, and the commands that they start, share what XLA compiles: most of them compile the same small models.
if "TF_XLA_FLAGS" not in os.environ:
    compiled = tempfile.mkdtemp(prefix="xla-")
    os.environ["TF_XLA_FLAGS"] = f"--tf_xla_persistent_cache_directory={compiled}"
    atexit.register(shutil.rmtree, compiled, ignore_errors=True)

# A job in the background ignores Ctrl-C, and so would the commands that tests start and send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Has the one that takes minutes begin first, so that no process is left alone with it at the end."""
    items.sort(key=lambda item: item.path.name != "test_patched_nmt.py")


@pytest.fixture
def run_python(tmp_path):
    """Runs a script in a new interpreter, elsewhere, and returns the finished process."""

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
