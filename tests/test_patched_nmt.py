"""The tests of nmt that depend on the kind of normalization, run on a copy with all of patches/nmt
applied.

The rest of nmt does not know the kind: the other tests show it on the unpatched tree.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ADDED = ("rmsnorm", "prmsnorm", "l2norm")
TRANSFORMERS = tuple(map("-".join, itertools.product(("pre", "post"), ADDED)))
# Tests and their cases.
CASES = {
    # Updates, costs and translations equal those of real Nematus, which has no l2norm.
    "test_ten_updates_equal_nematus": ("tiny_prms", "ttiny_rms_smooth"),
    "test_costs_equal_nematus": (
        "master_rms",
        "ttiny_rms",
        "ttiny_prms",
        "tsmall_rms",
    ),
    "test_an_ensemble_equals_nematus": ("names0",),
    "test_translations_equal_nematus": ("1-0-tsmall_rms", "5-1-tsmall_rms"),
    "test_rmsnorm_fast_is_imported_as_rmsnorm": (),
    "test_another_normalization_takes_the_gains": ADDED,
    # Gradients reach every weight, and are zero where the input is all padding.
    "test_every_weight_gets_a_gradient": ADDED,
    "test_a_filler_row_has_no_cost_and_no_gradient": ADDED,
    "test_every_weight_of_a_transformer_gets_a_gradient": TRANSFORMERS,
    # Caches and the memory of the source.
    "test_hypotheses_of_a_sentence_share_its_memory": TRANSFORMERS,
    # The exported model runs without rmsnorm_tf; l2norm uses the operations of rmsnorm.
    "test_the_other_kinds_of_normalization_save_the_same_operations": (
        "rmsnorm-rnn",
        "prmsnorm-transformer",
    ),
    # CTranslate2 computes the same, or says that it has no such norm.
    "test_costs_and_translations_are_ours": ("rmsnorm-pre", "rmsnorm-post", "prmsnorm-pre"),
    "test_the_copy_is_tested_and_patched": (),
}
QUICK = {
    "test_costs_equal_nematus": ("ttiny_prms",),
    "test_every_weight_gets_a_gradient": ("l2norm",),
    "test_the_copy_is_tested_and_patched": (),
}
COPY = """
from pathlib import Path
import nmt.normalization

def test_the_copy_is_tested_and_patched():
    assert Path(nmt.__file__).parents[1] == Path(__file__).parents[2]
    assert {"rmsnorm", "prmsnorm", "l2norm"} < set(nmt.normalization.KINDS)
"""


@pytest.mark.parametrize(
    "cases", [QUICK, pytest.param(CASES, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_a_patched_copy_of_nmt_passes_the_tests_that_depend_on_the_kind(tmp_path, cases):
    tests = {test for test, values in cases.items() if not values}
    for test, values in cases.items():
        tests |= {f"{test}[{value}]" for value in values}
    for name in ("nmt", "tests/nmt", "tests/data"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    shutil.copy(ROOT / "tests" / "parameters.py", tmp_path / "tests")
    apply = [sys.executable, str(ROOT / "patches" / "apply.py"), "apply", str(tmp_path)]
    subprocess.run(apply, check=True, capture_output=True)
    (tmp_path / "tests" / "nmt" / "test_copy.py").write_text(COPY)
    options = ["-v", "--no-header", "-p", "no:cacheprovider", "-n", "0", "-k", " or ".join(tests)]
    options += ["-m", "slow or not slow"]
    places = re.compile("|".join(rf"^def {name}\b" for name in cases), re.MULTILINE)
    files = [
        path
        for path in (tmp_path / "tests" / "nmt").rglob("test_*.py")
        if places.search(path.read_text())
    ]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *map(str, files)],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
        },  # for rmsnorm_tf; nmt is found in the copy first
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-2000:]
    assert (
        set(re.findall(r"::(\S+) PASSED", run.stdout)) == tests
    )  # fails if one of them is renamed
