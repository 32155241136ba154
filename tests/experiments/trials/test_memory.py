import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

SCRIPT = """
from experiments.trials.memory import Growth, Restart
growth = Growth(50 << 20)
growth.check()
text = b"x" * (100 << 20)
try:
    growth.check()
except Restart:
    print("grown")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say how much memory is taken")
def test_a_process_that_takes_much_more_memory_is_noticed():
    assert subprocess.check_output([sys.executable, "-c", SCRIPT], cwd=ROOT, text=True) == "grown\n"
