"""The processes of benchmarks/compare.py: commands, trainings that pause, and workers, each of one checkout."""

import hashlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.runner import ROOT, Worker

PLACE = ROOT / "build" / "compare"
LIMIT = 1800  # seconds that anything may take, on a busy machine too
COUNT = re.compile(rb"\b(\d+)/\d+ \[|\bupdate (\d+)\b")  # updates so far, of a progress bar or of a message


class Failed(Exception):
    """A checkout could not do something. The message is the last line that it printed."""

    def __init__(self, printed: bytes):
        lines = re.split(r"[\r\n]+", printed.decode(errors="replace").strip())
        super().__init__(lines[-1][:300] or "it ended without a message")


@dataclass(frozen=True)
class Side:
    """A checkout that takes part under a name. Its cache has only programs that it has compiled itself."""

    name: str
    checkout: Path
    cache: Path

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns the variables of its processes, which import the packages of the checkout."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("NMT_", "TF_", "XLA_"))}
        given = {"PYTHONPATH": str(self.checkout), "XDG_CACHE_HOME": str(self.cache), "TF_CPP_MIN_LOG_LEVEL": "3"}
        return kept | given | {"TQDM_MININTERVAL": "0", **(more or {})}  # a progress bar then shows each update

    def python(self, *arguments: object) -> dict[str, Any]:
        """Returns how to start Python in the checkout, with its messages in a pipe."""
        place = {"cwd": self.checkout, "env": self.environment(), "stdout": subprocess.DEVNULL}
        return {"args": [sys.executable, *map(str, arguments)], **place, "stderr": subprocess.PIPE}

    def seconds(self, *arguments: object) -> float:
        """Runs Python to its end and returns the seconds."""
        begun = time.perf_counter()
        try:
            ended = subprocess.run(**self.python(*arguments), timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {LIMIT} s".encode()) from None
        if ended.returncode:
            raise Failed(ended.stderr)
        return time.perf_counter() - begun

    def digest(self) -> str:
        """Returns a digest of the code of `nmt`."""
        files = sorted((self.checkout / "nmt").rglob("*.py"))
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


class Training:
    """A training that makes updates only while it is asked for them."""

    def __init__(self, side: Side, options: Path):
        self._side, self._options = side, options
        self._folder = tempfile.TemporaryDirectory(dir=PLACE)
        self._process: subprocess.Popen | None = None
        self._printed, self._updates = b"", 0

    def seconds(self, updates: int) -> float:
        """Lets it make this many further updates, pauses it, and returns the seconds. The first call starts it."""
        begun, goal = time.perf_counter(), self._updates + updates
        if self._process is None:
            arguments = ("-m", "nmt", "train", "-m", self._folder.name, "--config", self._options)
            self._process = subprocess.Popen(**self._side.python(*arguments))
        self._signal(signal.SIGCONT)
        while self._updates < goal:
            self._read(begun + LIMIT - time.perf_counter())
        self._signal(signal.SIGSTOP)
        return time.perf_counter() - begun

    def _read(self, limit: float) -> None:
        ready, _, _ = select.select([self._process.stderr], [], [], max(limit, 0))
        read = os.read(self._process.stderr.fileno(), 2**16) if ready else b""
        self._printed = (self._printed + read)[-(2**12) :]
        if not read:
            raise Failed(self._printed)
        self._updates = max([self._updates, *(int(bar or message) for bar, message in COUNT.findall(self._printed))])

    def end(self) -> float:
        """Ends it and returns its peak memory in MiB."""
        self._signal(signal.SIGKILL)
        _, self._process.returncode, used = os.wait4(self._process.pid, 0)
        return used.ru_maxrss / 1024

    def _signal(self, number: int) -> None:
        os.kill(self._process.pid, number)  # Popen's own function would collect a process that has ended, for `end`

    def __enter__(self) -> "Training":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process and self._process.returncode is None:
            self.end()
        if self._process:
            self._process.stderr.close()
        self._folder.cleanup()


class TaskWorker(Worker):
    """A process that runs benchmarks/compare_worker.py for a checkout."""

    def __init__(self, side: Side, environment: Mapping[str, str] | None = None):
        script = Path(__file__).with_name("compare_worker.py")
        options = {"env": side.environment(environment), "cwd": side.checkout, "stderr": subprocess.DEVNULL}
        super().__init__([sys.executable, script, side.checkout], **options)

    def seconds(self, kind: str, arguments: Mapping[str, Any]) -> float:
        """Returns the seconds of a turn."""
        try:
            found = self.ask([kind, arguments])
        except RuntimeError as error:
            found = str(error)
        if isinstance(found, str):
            raise Failed(found.encode())
        return found
