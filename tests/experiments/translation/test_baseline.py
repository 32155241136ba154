import shutil
import signal
import subprocess
import sys

import pytest

from experiments.runs.store import ROOT
from experiments.translation import baseline
from experiments.translation.baseline import Store, commit_of, execute, make_baseline
from experiments.translation.condition import Condition, Run
from nmt.errors import UserError


@pytest.fixture
def empty(tmp_path):
    """A place without files."""
    return Store("tiny", tmp_path)


def test_the_copy_has_all_kinds_and_all_code_that_runs_there(empty, tmp_path):
    make_baseline(empty)
    output = tmp_path / "output.txt"
    script = (
        "import nmt, nmt.normalization as seam, rmsnorm_tf\n"
        "import benchmarks.updates, experiments.translation.inside.recentre, nmt.commands.train\n"
        "print(*seam.KINDS)\n"
        "partial = seam.Normalization('partial-0.125')\n"
        "print(seam.build_normalization(partial, 8, 'norm').partial)\n"
        "modules = (nmt, rmsnorm_tf, experiments, benchmarks.updates)\n"
        "print(*(each.__file__ for each in modules), sep='\\n')\n"
    )
    execute(empty, "-c", script, output=output)
    kinds, partial, *files = output.read_text().splitlines()[-6:]
    assert {"none", "layernorm", "rmsnorm", "prmsnorm", "l2norm", "partial-0.125"} <= set(
        kinds.split()
    )
    assert partial == "0.125"
    assert all(file.startswith(str(empty.baseline)) for file in files)
    assert not (empty.baseline / "experiments" / "logs").exists()


def test_a_copy_replaces_the_previous_one(empty):
    make_baseline(empty)
    (empty.baseline / "nmt" / "left_over.py").touch()
    make_baseline(empty)
    assert not (empty.baseline / "nmt" / "left_over.py").exists()


@pytest.mark.parametrize(
    ("changed", "plus"),
    [
        ("rmsnorm_tf/new.py", "+"),
        ("experiments/translation/conditions/mine.py", "+"),
        ("experiments/results/report.md", ""),
    ],
)
def test_a_copy_stores_its_commit(empty, tmp_path, monkeypatch, changed, plus):
    checkout = tmp_path / "checkout"
    for name in ("nmt", "rmsnorm_tf", "experiments", "benchmarks", "patches"):
        ignore = shutil.ignore_patterns("__pycache__", "logs", "results")
        shutil.copytree(ROOT / name, checkout / name, ignore=ignore)

    def git(*arguments):
        command = ["git", "-C", checkout, "-c", "user.name=x", "-c", "user.email=x@y.z", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    monkeypatch.setattr(baseline, "ROOT", checkout)
    make_baseline(empty)
    head = git("rev-parse", "HEAD")[:12]
    assert commit_of(empty) == head
    (checkout / changed).parent.mkdir(exist_ok=True)
    (checkout / changed).touch()
    make_baseline(empty)
    assert commit_of(empty) == head + plus


def test_a_failed_command_is_named_with_its_output_file(store, tmp_path):
    output = tmp_path / "output.txt"
    with pytest.raises(UserError, match=rf"ended with status 3; see {output}"):
        execute(store, "-c", "print('because'); raise SystemExit(3)", output=output)
    assert output.read_text() == "because\n"


def test_an_interruption_ends_the_process(store, tmp_path):
    script = f"""
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(open({str(tmp_path / "saved")!r}, "w").close()))
time.sleep(60)
"""

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(3)
    try:
        with pytest.raises(KeyboardInterrupt):
            execute(store, "-c", script)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert (tmp_path / "saved").exists()


def test_work_is_in_build_and_logs_are_in_experiments():
    store = Store("tiny")
    run = Run(Condition("rmsnorm", "RMSNorm", kind="rmsnorm"), 2)
    assert store.model(run) == ROOT / "runs" / "reproduce" / "tiny" / "runs" / "rmsnorm-2" / "model"
    assert store.logs == ROOT / "experiments" / "logs" / "tiny"


def test_rows_and_folders_do_not_import_keras():
    script = (
        "import sys, experiments.translation.baseline, experiments.__main__\n"
        "sys.exit('keras' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == 0
