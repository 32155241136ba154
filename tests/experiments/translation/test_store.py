import subprocess
import sys

import pytest

from experiments.runs.store import ROOT
from experiments.translation.baseline import Store
from experiments.translation.condition import Condition, Run
from nmt.errors import UserError


def test_work_is_in_build_and_logs_are_in_experiments():
    store = Store("tiny")
    run = Run(Condition("rmsnorm", "RMSNorm", kind="rmsnorm"), 2)
    assert store.model(run) == ROOT / "runs" / "reproduce" / "tiny" / "runs" / "rmsnorm-2" / "model"
    assert store.logs == ROOT / "experiments" / "logs" / "tiny"


def test_work_with_other_values_is_refused():
    store = Store("tiny")
    store.require_same(
        store.logs, {"a": 1, "b": [2], "c": 3 * 0.003}, {"b": [2], "a": 1, "c": 0.009}
    )
    with pytest.raises(UserError, match="a was 1 and is now None, c was None"):
        store.require_same(store.logs, {"a": 1, "b": [2]}, {"b": [2], "c": 3})


def test_rows_and_folders_do_not_import_keras():
    script = (
        "import sys, experiments.translation.baseline, experiments.__main__\n"
        "sys.exit('keras' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == 0
