"""Work in threads and in processes."""

import operator
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from nmt.text.parallel import Processes, parallel_map


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


PROGRAM = """
import operator, os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from nmt.text.parallel import Processes
print("begun", flush=True)
lengths = Processes(operator.methodcaller, "__len__")
assert lengths("abc") == 3
print(subprocess.run(["pgrep", "-P", str(os.getpid())], capture_output=True, text=True).stdout.split()[0], flush=True)
time.sleep(60)
"""


def test_processes_end_with_the_one_that_asks_and_import_no_main_module():
    """Also if it is killed."""
    root = Path(__file__).parents[3]
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begun\n"
    number = int(process.stdout.readline())
    process.kill()
    process.communicate()
    for _ in range(100):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{number}/stat").read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("it still runs")
