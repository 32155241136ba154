"""`python -m nmt prepare`, and what a training re-uses of it."""

import re

import pytest


@pytest.fixture
def prepare(run, training, tmp_path, monkeypatch):
    """Scans the training text of `training`, into a cache of its own."""
    monkeypatch.setenv("NMT_TEXT_CACHE", str(tmp_path / "cache"))
    names = ("--source_dataset", "train.en", "--target_dataset", "train.de")
    options = (*names, "--dictionaries", "words.json", "words.json", "--maxlen", 7)
    return lambda *words: run("prepare", *options, *words)


def test_a_text_is_scanned_in_advance(prepare, tmp_path):
    status, _, said = prepare()
    assert (status, said.splitlines()[0]) == (
        0,
        "64 of 64 sentence pairs are used; 0 have an empty side, 0 have more than 7 tokens on a side",
    )
    made = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*/ids-*/*")}
    assert len(made) == 3  # both sides have the same lines
    assert prepare()[0] == 0
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache").glob("*/ids-*/*")} == made


def test_the_validation_text_is_scanned_too(prepare, tmp_path):
    names = ("--valid_source_dataset", "train.de", "--valid_target_dataset", "train.en")
    assert prepare(*names)[0] == 0
    assert len(list((tmp_path / "cache").glob("*/shared-*/*"))) == 1
    status, _, said = prepare(*names[:2])
    assert (status, said.count("\n")) == (2, 1)
    assert "--valid_target_dataset is missing" in said


def test_a_cache_that_is_off_keeps_nothing(prepare, monkeypatch):
    monkeypatch.setenv("NMT_TEXT_CACHE", "off")
    status, _, said = prepare()
    assert (status, said.count("\n")) == (2, 1)
    assert "NMT_TEXT_CACHE is off" in said


def test_a_full_cache_is_named(prepare, full_disk, write_lines):
    write_lines("train.en", ["a b c d"] * 5000)
    write_lines("train.de", ["a b c d"] * 5000)
    with full_disk():
        status, _, said = prepare()
    assert status == 2
    assert re.search(r"the cache \S+ cannot be written: .*; make room, or let NMT_TEXT_CACHE name another", said)


def test_options_come_from_a_file_too(prepare, tmp_path):
    (tmp_path / "options.json").write_text('{"dataset_weights": [1.5]}')
    assert "an epoch takes 96 pairs, by --dataset_weights" in prepare("--config", "options.json")[2]


def test_a_missing_option_is_named(run):
    status, _, said = run("prepare", "--source_dataset", "train.en")
    assert status == 2
    assert "nmt: --target_dataset is missing" in said
    assert "--dictionaries is missing" in said
    assert "valid" not in said
