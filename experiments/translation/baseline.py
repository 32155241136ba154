"""The folders of a corpus, and a patched copy of the baseline with the kinds of all conditions.

The copy holds all code that its processes run, so edits in the checkout do not affect a training in
progress.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from nmt.errors import UserError

from ..runs.store import ROOT, LogStore, read_commit
from .condition import Run

_COPIED = ("nmt", "rmsnorm_tf", "experiments", "benchmarks")
_MADE = ("logs", "results")  # folders of output in experiments/
_COMMIT = "commit"
# The end of nmt/normalization.py in the copy.
_KINDS_OF_CONDITIONS = """

from experiments.translation.schedule import read_conditions

_BUILDERS |= {each.name: each.build for each in read_conditions() if each.build}
KINDS = tuple(_BUILDERS)
"""


class Store(LogStore):
    """The logs of a corpus, and its other folders in a checkout."""

    @property
    def baseline(self) -> Path:
        return self.work / "baseline"

    @property
    def compiled(self) -> Path:
        """The cache of XLA, which all trainings share."""
        return self.work / "compiled"

    def run(self, run: Run) -> Path:
        return self.work / "runs" / run.name

    def model(self, run: Run) -> Path:
        return self.run(run) / "model"


def make_baseline(store: Store) -> None:
    """Makes a patched copy of the baseline and replaces an earlier copy.

    Raises:
        UserError: The patches do not apply.
    """
    temporary = store.baseline.with_name("baseline.part")
    shutil.rmtree(temporary, ignore_errors=True)
    for name in _COPIED:
        shutil.copytree(
            ROOT / name, temporary / name, ignore=shutil.ignore_patterns("__pycache__", *_MADE)
        )
    apply = [sys.executable, str(ROOT / "patches" / "apply.py"), "apply", str(temporary)]
    applied = subprocess.run(apply, capture_output=True, text=True)
    if applied.returncode:
        raise UserError(f"the patches do not apply to the baseline: {applied.stderr.strip()}")
    with open(temporary / "nmt" / "normalization.py", "a", encoding="utf-8") as file:
        file.write(_KINDS_OF_CONDITIONS)
    which = (*_COPIED, "patches", *(f":(exclude)experiments/{name}" for name in _MADE))
    (temporary / _COMMIT).write_text(read_commit(ROOT, "--", *which))
    shutil.rmtree(store.baseline, ignore_errors=True)
    temporary.rename(store.baseline)


def commit_of(store: Store) -> str:
    """Returns the commit that the copy was made from, with a plus if files were changed."""
    return (store.baseline / _COMMIT).read_text()


def execute(store: Store, *arguments: str, output: Path | None = None) -> None:
    """Runs Python in the copy.

    Args:
        store: The folders of the corpus.
        arguments: Arguments of the interpreter.
        output: File that the output is appended to; `None` for the terminal.

    Raises:
        UserError: The process failed.
    """
    cache = f"--tf_xla_persistent_cache_directory={store.compiled}"
    flags = f"{os.environ.get('TF_XLA_FLAGS', '')} {cache}".strip()
    one_gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0]  # `train` would use all
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": one_gpu,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_XLA_FLAGS": flags,
    }
    with open(output or os.devnull, "a", encoding="utf-8") as file:
        printed = {"stdout": file, "stderr": file} if output else {}
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=store.baseline, env=environment, **printed
        )
        try:
            process.wait()
        finally:  # a training that gets SIGTERM saves a checkpoint
            process.terminate()
            process.wait()
    if process.returncode:
        where = f"see {output}" if output else "see above"
        raise UserError(
            f"python {' '.join(arguments[:3])} ended with status {process.returncode}; {where}"
        )
