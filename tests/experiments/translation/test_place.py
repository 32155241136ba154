import subprocess
import sys

import pytest

from experiments.translation.place import Place
from experiments.translation.row import Row, Run
from experiments.trials.book import ROOT
from nmt.errors import UserError


def test_work_is_in_build_and_logs_are_in_experiments():
    place = Place("tiny")
    run = Run(Row("rmsnorm", "RMSNorm", kind="rmsnorm"), 2)
    assert place.model(run) == ROOT / "work" / "reproduce" / "tiny" / "runs" / "rmsnorm-2" / "model"
    assert place.logs == ROOT / "experiments" / "logs" / "tiny"


def test_work_with_other_values_is_refused():
    place = Place("tiny")
    place.require_same(
        place.logs, {"a": 1, "b": [2], "c": 3 * 0.003}, {"b": [2], "a": 1, "c": 0.009}
    )
    said = f"^{place.logs}: a was 1 and is now None, c was None and is now 3; move {place.logs} and {place.work} away"
    with pytest.raises(UserError, match=said):
        place.require_same(place.logs, {"a": 1, "b": [2]}, {"b": [2], "c": 3})


def test_rows_and_folders_do_not_import_keras():
    script = "import sys, experiments.translation.place, experiments.__main__; sys.exit('keras' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == 0
