import subprocess
import sys

SCRIPT = """
from experiments.trials.memory import Growth, MemoryGrown
growth = Growth(50 << 20)
growth.check()
text = b"x" * (100 << 20)
try:
    growth.check()
except MemoryGrown:
    print("grown")
"""


def test_a_process_that_takes_much_more_memory_is_noticed():
    assert subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True).stdout == "grown\n"
