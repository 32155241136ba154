import json
import re
import sys
from dataclasses import asdict, replace

import pytest

from experiments import __main__ as command
from experiments.reporting.speed import PROCESSES
from experiments.runs.store import ROOT
from experiments.translation import corpus as corpora
from experiments.translation import runs, task
from experiments.translation.baseline import Store
from experiments.translation.condition import Run
from experiments.translation.corpus import prepare, read_corpus
from experiments.translation.runs import make_all
from experiments.translation.schedule import read_conditions
from experiments.translation.task import reproduce
from nmt.errors import UserError
from nmt.storage.files import exclusive
from tests.experiments.translation.conftest import write

SECTIONS = [
    "table2",
    "differences",
    "speed",
    "curves",
    "centre",
    "partial",
    "mean_share",
    "invariance",
]
PICTURES = ["differences", "speed", "curves"]


@pytest.fixture
def tiny(corpus, tmp_path, monkeypatch):
    """The empty place of a corpus that is declared as `tiny`, with a remark."""
    declared = {
        name: value for name, value in asdict(corpus).items() if name not in ("name", "origin")
    }
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "tiny.json").write_text(
        json.dumps({**declared, "remarks": ["It is tiny."], "seeds": 1})
    )
    monkeypatch.setattr(corpora, "FOLDER", tmp_path / "corpora")
    monkeypatch.setattr(task, "Store", lambda name, _: Store(name, tmp_path))
    return Store("tiny", tmp_path)


def rnn_conditions():
    """Returns the conditions that are trained on it."""
    return [
        condition
        for condition in read_conditions()
        if condition.model_type == "rnn" and not condition.corpora
    ]


def reported(store):
    """Returns the report, as JSON and as text."""
    return json.loads((store.report / "report.json").read_text()), (
        store.report / "report.md"
    ).read_text()


def made(ran):
    """Returns the names of the runs that were trained and of the measurements."""
    trained = [each[each.index("--model") + 1].split("/")[-2] for each in ran if "train" in each]
    return trained, [each[0] for each in ran if "--batches" in each]


@pytest.mark.slow
def test_everything_is_trained_measured_and_reported_once(tiny, ran):
    write(tiny.report / "of_the_last.png", "")
    reproduce("tiny", so_far=False)
    found, text = reported(tiny)
    assert {path.stem for path in tiny.report.glob("*.png")} == set(PICTURES)
    assert list(found["sections"]) == SECTIONS
    _, table, about, remark = text.split("\n\n")[1:5]
    assert table.startswith("| claim | paper | ours | verdict |")
    assert len(table.splitlines()) == 2 + len(found["claims"])
    assert "trainings are done" in about
    assert remark == "It is tiny."
    assert f"{len(rnn_conditions())} of {len(rnn_conditions())} trainings are done" in text
    trained, measured = made(ran)
    assert trained == [f"{condition.name}-1" for condition in rnn_conditions()]
    assert len(measured) == PROCESSES
    assert found["versions"] == {"tensorflow": ["2"]}
    assert not found["failed"]
    ran.clear()
    reproduce("tiny", so_far=False)
    assert made(ran) == ([], [])


@pytest.mark.slow
def test_a_failed_run_is_named_in_the_report_and_tried_again(tiny, ran, monkeypatch, capsys):
    execute = runs.execute

    def fail(store, *arguments, **given):
        if "train" in arguments and "l2norm-1" in arguments[4]:
            raise UserError("it diverged")
        execute(store, *arguments, **given)

    monkeypatch.setattr(runs, "execute", fail)
    monkeypatch.setattr(sys, "argv", ["experiments", "tiny"])
    monkeypatch.setattr(
        command.signal, "signal", lambda *_: None
    )  # keep the handlers of the test process
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "l2norm-1 failed: it diverged" in capsys.readouterr().err
    found, text = reported(tiny)
    assert found["failed"] == ["l2norm-1"]
    assert "Failed, and not reported: l2norm-1." in text
    assert len(made(ran)[0]) == len(rnn_conditions()) - 1
    ran.clear()
    monkeypatch.setattr(runs, "execute", execute)
    command.main()
    assert made(ran) == (["l2norm-1"], [])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rmsnorm", "l2norm-scaled", "partial-0.5", "rmsnorm-centre"])
def test_so_far_reports_a_single_row_and_runs_nothing(name, tiny, ran):
    (condition,) = [each for each in rnn_conditions() if each.name == name]
    corpus = read_corpus("tiny")
    write(tiny.baseline / "commit", "0123456789ab")
    prepare(corpus, tiny)
    make_all([Run(condition, 1)], corpus, tiny)
    ran.clear()
    reproduce("tiny", so_far=True)
    assert not ran
    of_table2 = ["table2", "curves", "mean_share"]
    shown = of_table2 if condition.section == "main" else [condition.section]
    assert list(reported(tiny)[0]["sections"]) == [*shown, "invariance"]


def test_so_far_without_logs_is_refused(tiny, ran):
    with pytest.raises(UserError, match="no training on tiny is done yet"):
        reproduce("tiny", so_far=True)
    assert not tiny.work.exists()


@pytest.mark.slow
def test_the_row_of_the_readme_is_added_to_table_2(tiny, ran, monkeypatch):
    (source,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "experiments" / "README.md").read_text(), re.DOTALL
    )
    found = {
        "__name__": "experiments.translation.conditions.mine",
        "__package__": "experiments.translation.conditions",
    }
    exec(source, found)
    (condition,) = found["CONDITIONS"]
    assert condition.build("norm").name == "norm"
    monkeypatch.setattr(task, "read_conditions", lambda: [*read_conditions(), condition])
    reproduce("tiny", so_far=False)
    sections = reported(tiny)[0]["sections"]
    for name in ("table2", "curves"):
        assert any(condition.label in cells[0] for cells in sections[name]["rows"]), name


def test_a_folder_with_missing_files_leaves_nothing_behind(tiny, tmp_path):
    (tmp_path / "corpora" / "wmt14.json").write_text(
        (tmp_path / "corpora" / "tiny.json").read_text()
    )
    (tmp_path / "text").mkdir()
    with pytest.raises(UserError, match=r"lacks train\.en"):
        reproduce(str(tmp_path / "text"), so_far=False)
    assert not tiny.work.parent.exists()


def test_a_corpus_in_use_is_refused(tiny, ran):
    with exclusive(tiny.work), pytest.raises(UserError, match="is in use by another"):
        reproduce("tiny", so_far=False)
    assert not tiny.baseline.exists()


def test_only_some_seeds_are_trained_and_nothing_is_measured(tiny, ran, monkeypatch, tmp_path):
    condition = next(condition for condition in rnn_conditions() if condition.name == "rmsnorm")
    monkeypatch.setattr(task, "read_conditions", lambda: [replace(condition, seeds=3)])
    declared = tmp_path / "corpora" / "tiny.json"
    declared.write_text(json.dumps({**json.loads(declared.read_text()), "seeds": 3}))
    reproduce("tiny", so_far=False, seeds=[3, 1])
    assert made(ran) == (["rmsnorm-1", "rmsnorm-3"], [])
    with pytest.raises(UserError, match="with the seed 4, 9"):
        reproduce("tiny", so_far=False, seeds=[9, 3, 4])
