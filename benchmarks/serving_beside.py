"""Measures how long a caller of one sentence waits while the service of an export computes one large request.

    python benchmarks/serving_beside.py SAVED_MODEL < sentences

Prints the seconds of single sentences alone, and beside one request of 500 lines of 1,500 characters.
"""

import argparse
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
from serving_load import Service, ask

LINES, CHARACTERS = 500, 1500


def long_lines(lines):
    """Returns lines of CHARACTERS characters, all different."""
    text = " ".join(lines)
    text *= 1 + (LINES + CHARACTERS) // len(text)
    return [text[start : start + CHARACTERS] for start in range(LINES)]


def measure(service, lines, seconds):
    """Returns the seconds of each of many requests of one sentence, sent one after the other."""
    connection, end, taken = service.connect(), time.monotonic() + seconds, []
    while time.monotonic() < end:
        taken.append(ask(connection, [lines[len(taken) % len(lines)]]))
    return np.array(taken)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "saved_model", type=Path, metavar="SAVED_MODEL", help="folder that `python -m nmt export` wrote"
    )
    parser.add_argument("--seconds", type=float, default=15, help="of each of the two measurements (default: 15)")
    options = parser.parse_args()
    lines = [line.rstrip("\n") for line in sys.stdin]
    with closing(Service(options.saved_model)) as service:
        measure(service, lines, 1)
        alone = measure(service, lines, options.seconds)
        connection = service.connect()
        large = threading.Thread(target=ask, args=(connection, long_lines(lines)), daemon=True)
        large.start()
        time.sleep(1)
        beside = measure(service, lines, options.seconds)
        if not large.is_alive():
            sys.exit("the large request ended during the measurement; give fewer --seconds")
        connection.close()
    for name, taken in (("alone", alone), ("beside", beside)):
        print(f"{name}: median {np.median(taken):.3f} s, longest {taken.max():.3f} s, {len(taken)} requests")
    ratios = np.array([np.median(beside), beside.max()]) / np.median(alone)
    print(f"over the median alone: median {ratios[0]:.1f}, longest {ratios[1]:.1f}")


if __name__ == "__main__":
    main()
