"""The tests of nmt with the kinds of normalization that the patches add, on a copy with all of patches/nmt applied."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
ADDED = ("rmsnorm", "prmsnorm", "l2norm")
OPTIONS = ["-v", "--no-header", "-p", "no:cacheprovider", "-n", "2", "-k", "rms or l2norm or patched"]
COPY = """
from pathlib import Path
import nmt.normalization

def test_it_is_the_copy_that_is_tested_and_it_is_patched():
    assert Path(nmt.__file__).parents[1] == Path(__file__).parents[2]
    assert {"rmsnorm", "prmsnorm", "l2norm"} < set(nmt.normalization.KINDS)
"""


def test_the_tests_of_nmt_pass_on_a_patched_copy(tmp_path):
    for name in ("nmt", "tests/nmt", "tests/data"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    apply = [sys.executable, str(ROOT / "patches" / "apply.py"), "apply", str(tmp_path)]
    subprocess.run(apply, check=True, capture_output=True)
    (tmp_path / "tests" / "nmt" / "test_copy.py").write_text(COPY)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, "tests/nmt"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # rmsnorm_tf; nmt is found in the copy first
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert all(re.search(rf"PASSED .*\[{kind}\]", run.stdout) for kind in ADDED)
    assert "PASSED tests/nmt/test_copy.py::" in run.stdout
