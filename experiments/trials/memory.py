"""The memory that trainings leave behind:

TensorFlow keeps each program that it compiles until the process ends.
"""

import resource
from pathlib import Path


class Restart(Exception):
    """The program must start again to go on, in a new process. What is done is kept."""


def memory() -> int:
    """Returns the memory that this process has, in bytes; 0 on systems that do not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except FileNotFoundError:  # not Linux
        return 0
