"""The directory of `python -m nmt train`: what a training writes there, and what it leaves
alone."""

import os
import re
from types import SimpleNamespace

import pytest
import sacrebleu

from tests.nmt.conftest import LINES
from tests.nmt.outcomes import refused

FILES = ["best.npz", "config.json", "files.json", "kept/2.npz", "last.npz", "lock", "progress.json"]
FILES += ["source.model", "target.model", "train.log", "valid/2.txt", "versions.json"]


def test_every_entry_that_a_training_writes_is_named_above(train, tmp_path):
    assert train("--keep", 1)[0] == 0
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {name.split("/")[0] for name in FILES} | {"logs"}


@pytest.mark.parametrize("name", ["kept", "logs", "valid", *FILES])
def test_a_training_writes_nothing_behind_a_link_out_of_its_directory(train, tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "model" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "elsewhere" / "file" if name in FILES else tmp_path / "elsewhere")
    assert f"nmt: model/{name} is a link out of model" in refused(train("--keep", 1))
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["train.log", "logs/events"])
def test_a_training_does_not_write_to_a_pipe(train, tmp_path, name):
    """It would never end."""
    (tmp_path / "model" / name).parent.mkdir(parents=True)
    os.mkfifo(tmp_path / "model" / name)
    assert f"nmt: model/{name} is not a regular file" in refused(train())


def test_a_training_leaves_other_links_in_its_directory_alone(train, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "model").symlink_to(tmp_path / "disk")
    (tmp_path / "disk" / "corpus").symlink_to(tmp_path)
    assert train("--source_dataset", "model/corpus/train.en")[0] == 0


@pytest.mark.slow
def test_a_training_without_its_best_model_says_so(train, tmp_path, monkeypatch):
    falling = (SimpleNamespace(score=score) for score in (2.0, 1.0))
    monkeypatch.setattr(sacrebleu.BLEU, "corpus_score", lambda *_: next(falling))
    monkeypatch.setattr(sacrebleu.BLEU, "get_signature", lambda _: "scripted")
    assert "model/best.npz keeps it" in train("--finish_after", 4)[2]
    (tmp_path / "model" / "best.npz").unlink()
    status, _, said = train("--finish_after", 4)
    assert (status, "there is no model/best.npz" in said) == (0, True)


def test_a_training_that_fails_at_once_leaves_no_directory(train, tmp_path):
    assert "nowhere" in refused(train("--valid_source_dataset", "nowhere"))
    assert not (tmp_path / "model").exists()


def test_a_model_without_its_last_checkpoint_is_not_overwritten(run, trained, tmp_path):
    (tmp_path / "model" / "last.npz").unlink()
    best = (tmp_path / "model" / "best.npz").read_bytes()
    status, _, said = run(*trained)
    assert (status, (tmp_path / "model" / "best.npz").read_bytes()) == (2, best)
    assert "holds a model but no last.npz" in said


def test_every_validation_leaves_its_translations_and_messages_are_logged(train, tmp_path):
    """Also those of a training that is resumed; a training that is refused leaves no directory."""
    assert train("--finish_after", 2)[0] == 0
    status, _, said = train("--finish_after", 4)
    assert status == 0
    folder = tmp_path / "model" / "valid"
    assert sorted(path.name for path in folder.iterdir()) == ["2.txt", "4.txt"]
    assert len((folder / "4.txt").read_text().splitlines()) == len(LINES)
    log = (tmp_path / "model" / "train.log").read_text()
    assert [log.count(f" update {update}  train loss") for update in (2, 4)] == [1, 1]
    messages = [
        line
        for line in said.splitlines()
        if line.startswith(("trains", "update 4  ", "stopped", "6 of 6"))
    ]
    assert len(messages) == 4
    for message in messages:
        assert re.search(
            rf"^\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d {re.escape(message)}$", log, re.MULTILINE
        )
    status, _, said = train("--source_dataset", "dev.en", "train.en")
    assert status == 2
    refusal = said.splitlines()[-1].removeprefix("nmt: ")
    assert (tmp_path / "model" / "train.log").read_text().endswith(f" {refusal}\n")
    assert train("-m", "refused", "--source_dataset", "absent")[0] == 2
    assert not (tmp_path / "refused").exists()
