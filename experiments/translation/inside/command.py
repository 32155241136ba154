"""The command line of programs that measure a trained model on a text; runs in the patched copy of the baseline."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nmt.storage.files import atomic_write
from nmt.text.parallel_text import ParallelText


def measure_model(description: str, measure: Callable[[Path, ParallelText], Any]) -> None:
    """Measures the model and the text that the command line names, and writes what it finds as JSON.

    Args:
        description: Of the program, in a line.
        measure: Takes a model directory and a text.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", type=Path, required=True, metavar="DIR")
    parser.add_argument("--source", type=Path, required=True, metavar="FILE")
    parser.add_argument("--target", type=Path, required=True, metavar="FILE")
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="where the figures go, as JSON")
    options = parser.parse_args()
    measured = measure(options.model, ParallelText(options.source, options.target))
    with atomic_write(options.to) as file:
        json.dump(measured, file, indent=2)
