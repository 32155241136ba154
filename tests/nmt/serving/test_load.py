"""A minute, or LOAD_SECONDS, of many callers beside many hostile clients, all on this machine.

`-rP` prints the table.
"""

import collections
import concurrent.futures
import itertools
import os
import random
import re
import shutil
import statistics
import time
from pathlib import Path

import pytest

from tests.nmt.serving.test_hostile import KINDS

pytest.importorskip("starlette")

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "models"
CALLERS = 64
HOSTILE = 48
SECONDS = int(os.environ.get("LOAD_SECONDS", "60"))
LONG = 20 * 60  # seconds of a load after which memory has settled


def memory(process):
    """Returns the MiB of a process."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024


@pytest.mark.slow
def test_a_minute_of_callers_beside_hostile_clients(run, toy, start_service, tmp_path):
    shutil.copytree(toy, tmp_path / "models" / "toy" / "1")
    status, _, said = run(
        "export", "-m", GOLDEN / "layernorm", "--to", tmp_path / "models" / "demo" / "1", "-n"
    )
    assert status == 0, said
    service = start_service(tmp_path / "models", "--timeout", 300)  # however slow the machine
    lines = (GOLDEN / "test.en").read_text("utf-8").splitlines()
    _, answer = service.predict({"inputs": lines}, "demo")
    expected = dict(zip(lines, answer["outputs"]["translations"], strict=True))
    before = memory(service.process)
    end = time.monotonic() + SECONDS

    def call(i):
        draw = random.Random(i)
        found = []
        while time.monotonic() < end:
            texts = draw.choices(lines, k=draw.randrange(1, 5))
            begun = time.monotonic()
            status, answer = service.predict({"inputs": texts}, "demo")
            right = status != 200 or answer["outputs"]["translations"] == [
                expected[text] for text in texts
            ]
            found.append((status, len(texts), time.monotonic() - begun, right))
        return found

    def attack(i):
        draw = random.Random(-i)
        count = 0
        while time.monotonic() < end:
            draw.choice(KINDS)(draw, service.port)
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(CALLERS + HOSTILE) as threads:
        attacks = [threads.submit(attack, i) for i in range(1, 1 + HOSTILE)]
        calls = [threads.submit(call, i) for i in range(CALLERS)]
        time.sleep(SECONDS / 4)
        settled = memory(service.process)
        found = list(itertools.chain.from_iterable(caller.result() for caller in calls))
        hostile = sum(each.result() for each in attacks)
    assert service.get("/healthz")[0] == 200
    after = memory(service.process)
    statuses = collections.Counter(status for status, *_ in found)
    wrong = sum(not right for *_, right in found)
    good = [(count, taken) for status, count, taken, _ in found if status == 200]
    rows = sum(count for count, _ in good)
    seconds = [taken for _, taken in good]
    p50 = statistics.median(seconds)
    p95 = statistics.quantiles(seconds, n=20)[-1]
    counts = ", ".join(f"{status}: {n:,}" for status, n in sorted(statuses.items()))
    print(
        f"| rows answered, wrong ones among them | {rows:,}, {wrong} |\n"
        f"| responses by status | {counts} |\n"
        f"| hostile requests | {hostile:,} |\n"
        f"| p50, p95 of good requests | {1000 * p50:,.0f} ms, {1000 * p95:,.0f} ms |\n"
        f"| MiB before, after a quarter, at the end | {before:,}, {settled:,}, {after:,} |"
    )
    assert (wrong, "Traceback" in service.log.read_text()) == (0, False)
    assert rows > 0 and not any(status >= 500 for status in statuses)
    assert SECONDS < LONG or after <= 1.05 * settled
