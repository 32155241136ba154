"""Writes the figures of a benchmark to a JSON file, with what they depend on."""

import datetime
import json
import os
import platform
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

_INSTRUCTIONS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")  # which matrix products of a CPU can use


def machine() -> dict[str, Any]:
    """Returns the processor, its cores and its instructions for matrix products."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    values = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    flags = values.get("flags", "").split()
    return {
        "processor": values.get("model name", platform.processor()),
        "cores": os.cpu_count(),
        "instructions": [each for each in _INSTRUCTIONS if each in flags],
    }


def surroundings() -> dict[str, Any]:
    """Returns the machine, the versions of the libraries, and the date."""
    versions = {module.__name__: module.__version__ for module in (tf, keras, np)}
    return {"machine": machine(), "versions": versions, "date": datetime.date.today().isoformat()}


def model_facts(config: Any) -> dict[str, Any]:
    """Returns the options of a model that a table names."""
    return {name: getattr(config, name) for name in ("model_type", "state_size", "layer_normalization_type")}


def write_log(path: str | os.PathLike, benchmark: str, options: Mapping[str, Any], figures: Any) -> None:
    """Writes a log to a file, whose folder is made if it is missing.

    Args:
        path: The file.
        benchmark: Name of the script, without its ending.
        options: What it was called with.
        figures: What it found.
    """
    found = {"benchmark": benchmark, **surroundings(), "options": dict(options), "figures": figures}
    sys.path.append(str(Path(__file__).parents[1]))
    from nmt.storage.files import atomic_write  # not before a benchmark has imported its patched copy

    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(_readable(found) + "\n")


def _readable(found: Any) -> str:
    """Returns JSON with a line for each list of numbers."""
    return re.sub(
        r"\[\s+([-+\de.,\s]+?)\s+\]", lambda match: f"[{' '.join(match[1].split())}]", json.dumps(found, indent=1)
    )
