"""Checkpoints: saving and loading, and files that are refused."""

import json
import zipfile

import keras
import numpy as np
import pytest

from nmt.errors import UserError
from nmt.storage.checkpoints import load_checkpoint, save_checkpoint


def variables(**values):
    return [keras.Variable(np.float32(value), name=name) for name, value in values.items()]


def test_round_trip(tmp_path):
    save_checkpoint(tmp_path / "a.npz", variables(x=[1, 2], y=3), {"update": 7}, {})
    found = variables(x=[0, 0], y=0)
    assert load_checkpoint(tmp_path / "a.npz", found, {}) == {"update": 7}
    np.testing.assert_array_equal(found[0], [1, 2])
    np.testing.assert_array_equal(found[1], 3)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]


def test_a_checkpoint_may_hold_more_variables_than_are_loaded(tmp_path):
    save_checkpoint(tmp_path / "a.npz", variables(x=1, y=2), {}, {})
    (found,) = variables(y=0)
    load_checkpoint(tmp_path / "a.npz", [found], {})
    np.testing.assert_array_equal(found, 2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"x": 0, "z": 0}, r"^z is missing in .*a\.npz, but float32 \[\] in the model"),
        ({"x": 0, "y": [0, 0]}, r"^y is float32 \[\] in .*a\.npz, but float32 \[2\] in the model"),
    ],
)
def test_a_variable_that_does_not_fit_is_named_and_none_is_assigned(tmp_path, asked, said):
    save_checkpoint(tmp_path / "a.npz", variables(x=1, y=2), {}, {})
    found = variables(**asked)
    with pytest.raises(UserError, match=said):
        load_checkpoint(tmp_path / "a.npz", found, {})
    np.testing.assert_array_equal(found[0], 0)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_weights_that_are_not_finite_are_refused(tmp_path, value):
    save_checkpoint(tmp_path / "a.npz", variables(x=1, y=[2, value]), {}, {})
    found = variables(x=0, y=[0, 0])
    with pytest.raises(UserError, match=r"^y in .*a\.npz is not finite"):
        load_checkpoint(tmp_path / "a.npz", found, {})
    np.testing.assert_array_equal(found[0], 0)


@pytest.mark.parametrize("damage", ["missing", "text", "truncated", "pickled"])
def test_a_damaged_file_is_refused(tmp_path, damage):
    path = tmp_path / "a.npz"
    if damage == "text":
        path.write_text("no checkpoint")
    elif damage == "pickled":
        np.savez(path, state=np.array({"update": 7}, dtype=object))
    elif damage != "missing":
        save_checkpoint(path, variables(x=np.arange(100)), {}, {})
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(
        UserError, match="there is no checkpoint" if damage == "missing" else "is damaged"
    ):
        load_checkpoint(path, variables(x=np.zeros(100)), {})


def test_one_flipped_bit_anywhere_is_refused_or_changes_nothing(tmp_path):
    """One bit of every byte. A few bits, such as those of the date, are never read."""
    path = tmp_path / "a.npz"
    rng = np.random.default_rng(0)
    save_checkpoint(path, variables(x=np.arange(8), y=1), {"update": 7}, {})
    whole = path.read_bytes()
    refused = 0
    with zipfile.ZipFile(path) as archive:
        contents = sum(member.file_size for member in archive.infolist())
    found = variables(x=np.zeros(8), y=0)
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(8)
        path.write_bytes(flipped)
        for variable in found:
            variable.assign(np.zeros(variable.shape))
        try:
            assert load_checkpoint(path, found, {}) == {"update": 7}
            np.testing.assert_array_equal(found[0], np.arange(8))
            np.testing.assert_array_equal(found[1], 1)
        except UserError:
            refused += 1
            assert not found[0].numpy().any()
    assert refused > contents


def test_arrays_in_either_order_are_read(tmp_path):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "a.npz", state=np.array("{}"), x=np.asfortranarray(array), y=array)
    found = variables(x=np.zeros([2, 3]), y=np.zeros([2, 3]))
    load_checkpoint(tmp_path / "a.npz", found, {})
    for variable in found:
        np.testing.assert_array_equal(variable, array)


def test_a_newer_version_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", state=np.array(json.dumps({"version": 2})), x=np.float32(1))
    with pytest.raises(UserError, match=r"has version 2, .* reads version 1"):
        load_checkpoint(tmp_path / "a.npz", variables(x=0), {})


def test_values_that_differ_are_named(tmp_path):
    save_checkpoint(
        tmp_path / "a.npz", variables(x=1), {}, {"source vocabulary": "5e3d", "seed": 1}
    )
    (found,) = variables(x=0)
    with pytest.raises(UserError, match="another source vocabulary"):
        load_checkpoint(tmp_path / "a.npz", [found], {"source vocabulary": "77f0", "seed": 1})
    np.testing.assert_array_equal(found, 0)
    load_checkpoint(
        tmp_path / "a.npz", [found], {"source vocabulary": "5e3d", "seed": 1, "newer option": 2}
    )
    np.testing.assert_array_equal(found, 1)
