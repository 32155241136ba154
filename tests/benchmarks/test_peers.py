"""The comparison with JoeyNMT: both get the same sentences, and the table has what both take."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks import tables

ROOT = Path(__file__).parents[2]


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import peers

    return peers


def test_a_batch_has_the_ids_of_joeynmt(peers):
    """Words begin at 2 here and at 4 there; a row that is shorter is padded with 1."""
    ids = np.array([[2, 9, 0, 0], [5, 0, 0, 0]], np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.float32)
    batch = peers.joeynmt_batch(ids, mask, ids[::-1], mask[::-1])
    assert batch["src"].tolist() == [[4, 11, 3], [7, 3, 1]]
    assert batch["src_length"].tolist() == [3, 2]
    assert batch["trg"].tolist() == [[2, 7, 3, 1], [2, 4, 11, 3]]


def test_systems_take_turns_and_the_table_has_their_words_a_second(peers, tmp_path, monkeypatch):
    """An update takes half a second with each; the sentences of a batch have 41 to 45 words and an end."""
    (tmp_path / "joeynmt").mkdir()
    (tmp_path / "joeynmt" / "model.py").touch()
    answers = {"memory": 300.0, "libraries": 200.0}
    monkeypatch.setattr(peers, "start", lambda command: lambda line: answers.get(line, 0.5))
    words = ["--joeynmt", str(tmp_path), "--batches", "1", "--rounds", "2", "--batch_size", "4", "--vocabulary", "50"]
    rows = peers.compare(peers.parse([*words, "--systems", "ours float32", "JoeyNMT compiled"]), str(tmp_path))
    assert [row["system"] for row in rows] == ["ours float32", "JoeyNMT compiled"]
    for row in rows:
        assert (row["s/update"], row["/ ours"], row["first s"], row["MiB"], row["start"]) == (0.5, 1, 0.5, 300, 200)
        assert 4 * 42 / 0.5 <= row["tokens/s"] <= 4 * 46 / 0.5
    (table,) = tables.peers({"figures": rows})
    assert table[-1].startswith("| JoeyNMT compiled | 0.500 ± 0.000 | 1.00 |")


def test_a_folder_that_is_no_checkout_is_refused(peers, tmp_path, capsys):
    with pytest.raises(SystemExit):
        peers.parse(["--joeynmt", str(tmp_path)])
    assert "is no checkout of JoeyNMT: it has no joeynmt/model.py" in capsys.readouterr().err
