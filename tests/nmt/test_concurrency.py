"""Work in threads and in processes."""

import functools
import operator
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nmt.concurrency import ProcessPool, cores, parallel_map
from nmt.errors import UserError


def test_results_come_in_order_and_few_are_made_ahead():
    taken = []

    def items():
        for number in range(50):
            taken.append(number)
            yield number

    found = parallel_map(lambda number: number * 2, items(), threads=2)
    assert next(found) == 0
    assert len(taken) <= 6
    assert list(found) == [number * 2 for number in range(1, 50)]


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("100000 100000\n", 1),
        ("10000 100000", 1),
        ("max 100000", None),
        ("", None),
        ("1e9 9", None),
    ],
)
def test_a_container_gets_as_many_cores_as_its_quota(tmp_path, text, most):
    (tmp_path / "cpu.max").write_text(text)
    usable = cores(tmp_path / "missing")
    assert cores(tmp_path / "cpu.max") == min(most or usable, usable)
    (tmp_path / "cpu.max").write_text(f"{usable * 100000 - 1} 100000")
    assert cores(tmp_path / "cpu.max") == usable


def test_threads_share_the_processes():
    length = ProcessPool("counts", operator.methodcaller, "__len__")
    found = []
    threads = [
        threading.Thread(target=lambda text: found.append(length(text)), args=["a" * i])
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(8))


class Ends:
    """Kills the process that calls it, unless a file says that this has been done."""

    def __init__(self, done=None):
        self._done = done

    def __call__(self):
        if self._done is None or not self._done.exists():
            if self._done:
                self._done.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "an answer"


def make_caller():
    return ProcessPool("calls", operator.methodcaller, "__call__")


def test_a_call_whose_process_is_killed_is_made_again(tmp_path):
    assert make_caller()(Ends(tmp_path / "done")) == "an answer"


def test_a_call_that_kills_its_process_twice_is_an_error_and_the_next_has_a_new_process():
    call = make_caller()
    for _ in range(2 * cores()):
        with pytest.raises(UserError, match="killed by SIGKILL"):
            call(Ends())
    assert call(os.getpid) != os.getpid() == call(os.getppid)


def test_an_error_of_the_function_is_raised_and_its_process_goes_on():
    call = make_caller()
    processes = {call(os.getpid) for _ in range(2 * cores())}
    with pytest.raises(FileNotFoundError):
        call(functools.partial(os.stat, "absent"))
    assert {call(os.getpid) for _ in range(2 * cores())} == processes


PROGRAM = """
import operator, os, sys, time
sys.path.insert(0, sys.argv[1])
from nmt.concurrency import ProcessPool
call = ProcessPool("calls", operator.methodcaller, "__call__")
print(call(os.getpid), call(os.getpgrp), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_processes_end_with_the_one_that_asks_and_not_with_its_group(number):
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    helper, group = map(int, process.stdout.readline().split())
    assert group not in (process.pid, os.getpgrp())
    process.send_signal(number)
    process.communicate()
    for _ in range(100):
        try:
            os.kill(helper, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{helper}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("it still runs")
