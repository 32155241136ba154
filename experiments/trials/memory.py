"""The memory that trainings leave behind: TensorFlow keeps each program that it compiles until the process ends."""

import resource
from pathlib import Path

MOST = 4 << 30  # bytes


class Restart(Exception):
    """The program must start again to go on, in a new process. What is done is kept."""


class Growth:
    """Watches how much more memory this process takes than when this object was made.

    Args:
        most: Bytes that it may take more.
    """

    def __init__(self, most: int = MOST):
        self._most, self._begin = most, _taken()

    def check(self) -> None:
        """Checks the growth so far.

        Raises:
            Restart: It is above the limit.
        """
        if _taken() - self._begin > self._most:
            raise Restart


def _taken() -> int:
    """Returns the memory that this process has, in bytes; 0 on systems that do not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except FileNotFoundError:  # not Linux
        return 0
