"""Checkpoints: what is saved comes back, and nothing else is taken for one."""

import zipfile

import keras
import numpy as np
import pytest

from nmt.errors import UserError
from nmt.storage import checkpoints
from nmt.storage.checkpoints import load_checkpoint, save_checkpoint


def variables(**values):
    return [keras.Variable(np.float32(value), name=name) for name, value in values.items()]


def test_round_trip(tmp_path):
    save_checkpoint(tmp_path / "a.npz", variables(x=[1, 2], y=3), {"update": 7})
    found = variables(x=[0, 0], y=0)
    assert load_checkpoint(tmp_path / "a.npz", found) == {"update": 7}
    np.testing.assert_array_equal(found[0], [1, 2])
    np.testing.assert_array_equal(found[1], 3)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_may_hold_more_than_is_asked_for(tmp_path):
    save_checkpoint(tmp_path / "a.npz", variables(x=1, y=2), {})
    (found,) = variables(y=0)
    load_checkpoint(tmp_path / "a.npz", [found])
    np.testing.assert_array_equal(found, 2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"x": 0, "z": 0}, "has z as float32 in shape .*lacks it"),
        ({"x": 0, "y": [0, 0]}, r"has it as float32 in shape \[\]"),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_is_set(tmp_path, asked, said):
    save_checkpoint(tmp_path / "a.npz", variables(x=1, y=2), {})
    found = variables(**asked)
    with pytest.raises(UserError, match=said):
        load_checkpoint(tmp_path / "a.npz", found)
    np.testing.assert_array_equal(found[0], 0)


@pytest.mark.parametrize("damage", ["missing", "text", "truncated", "pickled"])
def test_a_damaged_file_is_refused(tmp_path, damage):
    path = tmp_path / "a.npz"
    if damage == "text":
        path.write_text("no checkpoint")
    elif damage == "pickled":
        np.savez(path, state=np.array({"update": 7}, dtype=object))
    elif damage != "missing":
        save_checkpoint(path, variables(x=np.arange(100)), {})
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match="there is no checkpoint" if damage == "missing" else "is damaged"):
        load_checkpoint(path, variables(x=np.zeros(100)))


def test_one_flipped_bit_anywhere_is_refused_or_changes_nothing(tmp_path):
    """A bit of each byte in turn; a few, such as those of the date, say nothing that is read."""
    path, rng = tmp_path / "a.npz", np.random.default_rng(0)
    save_checkpoint(path, variables(x=np.arange(8), y=1), {"update": 7})
    whole, refused = path.read_bytes(), 0
    with zipfile.ZipFile(path) as archive:
        contents = sum(member.file_size for member in archive.infolist())
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        found = variables(x=np.zeros(8), y=0)
        try:
            assert load_checkpoint(path, found) == {"update": 7}
            np.testing.assert_array_equal(found[0], np.arange(8))
            np.testing.assert_array_equal(found[1], 1)
        except UserError:
            refused += 1
            assert not found[0].numpy().any()
    assert refused > contents


def test_a_newer_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "VERSION", checkpoints.VERSION + 1)
    save_checkpoint(tmp_path / "a.npz", variables(x=1), {})
    monkeypatch.undo()
    with pytest.raises(UserError, match="is of version 2, and this nmt reads 1; use the nmt that wrote it"):
        load_checkpoint(tmp_path / "a.npz", variables(x=0))


def test_what_it_was_made_with_is_named_where_it_differs(tmp_path):
    save_checkpoint(tmp_path / "a.npz", variables(x=1), {}, {"source vocabulary": "5e3d", "seed": 1})
    (found,) = variables(x=0)
    with pytest.raises(UserError, match="made with another source vocabulary; put back"):
        load_checkpoint(tmp_path / "a.npz", [found], {"source vocabulary": "77f0", "seed": 1})
    np.testing.assert_array_equal(found, 0)
    load_checkpoint(tmp_path / "a.npz", [found], {"source vocabulary": "5e3d", "seed": 1, "newer option": 2})
    np.testing.assert_array_equal(found, 1)
