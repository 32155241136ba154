"""Measures the process and the machine: memory, cores, and the speed of a matrix product."""

import os
import resource
import time
from pathlib import Path
from statistics import median

import numpy as np

_SIZE = 1024  # rows and columns of the matrices of the check
_PRODUCTS = 30


class Restart(Exception):
    """The program must start again to go on, in a new process. What is done is kept."""


def memory() -> int:
    """Returns the memory that this process has, in bytes; 0 on systems that do not say.

    Trainings leave memory behind: TensorFlow keeps each program that it compiles until the process
    ends.
    """
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except FileNotFoundError:  # not Linux
        return 0


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gflops() -> float:
    """Returns the speed of a matrix product, the median of some: it falls while other programs run."""
    matrix = np.ones((_SIZE, _SIZE), np.float32)
    seconds = []
    for _ in range(_PRODUCTS):
        begin = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - begin)
    return 2 * _SIZE**3 / median(seconds) / 1e9
