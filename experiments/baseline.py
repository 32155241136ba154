"""A patched copy of the baseline, in which every row can be trained."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# What the rows build themselves, added at the end of the copy's nmt/normalization.py.
_ROWS = """

from experiments.plan import read_rows  # noqa: E402

_BUILDERS |= {row.name: row.build for row in read_rows() if row.build}
KINDS = tuple(_BUILDERS)
"""


def make_baseline(folder: Path) -> None:
    """Makes a folder with a patched copy of the baseline; one that is there is replaced."""
    aside = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    shutil.copytree(ROOT / "nmt", aside / "nmt", ignore=shutil.ignore_patterns("__pycache__"))
    apply = [sys.executable, str(ROOT / "patches" / "apply.py"), "apply", str(aside)]
    subprocess.run(apply, check=True, stdout=subprocess.DEVNULL)
    with (aside / "nmt" / "normalization.py").open("a", encoding="utf-8") as file:
        file.write(_ROWS)
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)


def environment(compiled: Path) -> dict[str, str]:
    """Returns the environment of a process that runs in the copy, with this project beside it.

    Args:
        compiled: Folder of what XLA has compiled, which the trainings share.
    """
    flags = f"{os.environ.get('TF_XLA_FLAGS', '')} --tf_xla_persistent_cache_directory={compiled}"
    return {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "TF_XLA_FLAGS": flags.strip()}
