"""Starts the processes of benchmarks/compare.py, each of one checkout."""

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.runner import ROOT, Worker

PLACE = ROOT / "build" / "compare"
LIMIT = 1800  # seconds that anything may take, on a busy machine too
# The updates so far, in a progress bar or in a message.
COUNT = re.compile(rb"\b(\d+)/\d+ \[|\bupdate (\d+)\b")
NOT_INHERITED = ("NMT_", "TF_", "XLA_")


class Failed(Exception):
    """A checkout could not do something. The message is the last line that it printed."""

    def __init__(self, printed: bytes):
        lines = re.split(r"[\r\n]+", printed.decode(errors="replace").strip())
        super().__init__(lines[-1][:300] or "it ended without a message")


@dataclass(frozen=True)
class Side:
    """A checkout that takes part under a name.

    Its cache has only programs that it has compiled itself.
    """

    name: str
    checkout: Path
    cache: Path

    def environment(self, **more: str) -> dict[str, str]:
        """Returns the variables of its processes, which import the packages of the checkout."""
        kept = {name: os.environ[name] for name in os.environ if not name.startswith(NOT_INHERITED)}
        given = {"PYTHONPATH": str(self.checkout), "XDG_CACHE_HOME": str(self.cache)}
        return kept | given | {"TF_CPP_MIN_LOG_LEVEL": "3"} | more

    def python(self, *arguments: object, **environment: str) -> dict[str, Any]:
        """Returns how to start Python in the checkout, with its messages in a pipe."""
        place = {"cwd": self.checkout, "env": self.environment(**environment)}
        command = [sys.executable, *map(str, arguments)]
        return {"args": command, "stderr": subprocess.PIPE, **place}

    def run(self, *arguments: object) -> bool:
        """Runs Python to its end."""
        start = self.python(*arguments)
        try:
            ended = subprocess.run(**start, stdout=subprocess.DEVNULL, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Failed(f"not done after {LIMIT} s".encode()) from None
        if ended.returncode:
            raise Failed(ended.stderr)
        return True


class Process:
    """A command of a checkout that its first use starts."""

    def __init__(self, side: Side, *arguments: object, **environment: str):
        self._start = side.python(*arguments, **environment)
        self._process = None

    def start(self, **pipes: Any) -> subprocess.Popen:
        """Returns the process, which it starts if it does not run."""
        self._process = self._process or subprocess.Popen(**self._start, **pipes)
        return self._process

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()


class Training(Process):
    """A training that makes updates only while it is asked for them."""

    def __init__(self, side: Side, options: Path):
        self._folder = tempfile.TemporaryDirectory(dir=PLACE)
        arguments = ("-m", "nmt", "train", "-m", self._folder.name, "--config", options)
        super().__init__(side, *arguments, TQDM_MININTERVAL="0")  # the bar shows each update
        self._printed = b""
        self._updates = 0

    def seconds(self, updates: int) -> float:
        """Lets it make this many further updates, pauses it, and returns the seconds."""
        begun = time.perf_counter()
        goal = self._updates + updates
        self.start(stdout=subprocess.DEVNULL).send_signal(signal.SIGCONT)
        while self._updates < goal:
            self._read(begun + LIMIT - time.perf_counter())
        self._process.send_signal(signal.SIGSTOP)
        return time.perf_counter() - begun

    def _read(self, limit: float) -> None:
        ready, _, _ = select.select([self._process.stderr], [], [], max(limit, 0))
        read = os.read(self._process.stderr.fileno(), 2**16) if ready else b""
        self._printed = (self._printed + read)[-(2**12) :]
        if not read:
            raise Failed(self._printed)
        for bar, message in COUNT.findall(self._printed):
            self._updates = max(self._updates, int(bar or message))

    def peak(self) -> float:
        """Returns its peak memory in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._folder.cleanup()


class Translation(Process):
    """A `translate` that translates lines when it gets them."""

    def __init__(self, side: Side, model: Path):
        arguments = ("-m", "nmt", "translate", "-m", model)
        super().__init__(side, *arguments, PYTHONUNBUFFERED="1", TQDM_DISABLE="1")

    def seconds(self, lines: Sequence[str]) -> float:
        """Lets it translate lines, and returns the seconds."""
        begun = time.perf_counter()
        process = self.start(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with contextlib.suppress(BrokenPipeError):
            print(*lines, sep="\n", file=process.stdin, flush=True)
        if not all(process.stdout.readline() for _ in lines):
            raise Failed(process.stderr.read().encode())
        return time.perf_counter() - begun


class TaskWorker(Worker):
    """A process that runs benchmarks/compare_worker.py for a checkout."""

    def __init__(self, side: Side, **environment: str):
        script = Path(__file__).with_name("compare_worker.py")
        command = [sys.executable, script, side.checkout]
        place = {"cwd": side.checkout, "env": side.environment(**environment)}
        super().__init__(command, stderr=subprocess.DEVNULL, **place)

    def seconds(self, kind: str, arguments: Mapping[str, Any]) -> float:
        """Returns the seconds of a turn."""
        try:
            found = self.ask([kind, arguments])
        except RuntimeError as error:
            found = str(error)
        if isinstance(found, str):
            raise Failed(found.encode())
        return found
