"""Work in threads and in processes."""

import operator
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nmt.errors import UserError
from nmt.text.parallel import Processes, cores, parallel_map


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


def test_threads_share_the_processes():
    length, found = Processes(operator.methodcaller, "__len__"), []
    threads = [threading.Thread(target=lambda text: found.append(length(text)), args=["a" * i]) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(8))


class KillsItself:
    """Kills the process that calls it."""

    def __call__(self):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_killed_is_named_and_replaced():
    call = Processes(operator.methodcaller, "__call__")
    for _ in range(2 * cores()):
        with pytest.raises(UserError, match=r"a process that splits text at random was killed by SIGKILL; if memory"):
            call(KillsItself())
    assert call(os.getpid) not in (os.getpid(), call(os.getppid))


PROGRAM = """
import operator, os, sys, time
sys.path.insert(0, sys.argv[1])
from nmt.text.parallel import Processes
call = Processes(operator.methodcaller, "__call__")
print(call(os.getpid), call(os.getpgrp), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_processes_end_with_the_one_that_asks_and_not_with_its_group(number):
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(root)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
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
