"""JoeyNMT gets the same sentences as we."""

from pathlib import Path

import numpy as np
import pytest

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
