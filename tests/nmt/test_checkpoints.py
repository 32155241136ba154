"""Checkpoints: what is saved comes back, and nothing else is taken for one."""

import keras
import numpy as np
import pytest

from nmt.checkpoints import load_checkpoint, save_checkpoint
from nmt.errors import UserError


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
    [({"x": 0, "z": 0}, "has z in shape .*lacks it"), ({"x": 0, "y": [0, 0]}, r"has it in shape \[\]")],
)
def test_what_does_not_fit_is_named_and_nothing_is_set(tmp_path, asked, said):
    save_checkpoint(tmp_path / "a.npz", variables(x=1, y=2), {})
    found = variables(**asked)
    with pytest.raises(UserError, match=said):
        load_checkpoint(tmp_path / "a.npz", found)
    np.testing.assert_array_equal(found[0], 0)


@pytest.mark.parametrize("damage", ["missing", "text", "truncated", "flipped", "pickled"])
def test_a_damaged_file_is_refused(tmp_path, damage):
    path = tmp_path / "a.npz"
    if damage == "text":
        path.write_text("no checkpoint")
    elif damage == "pickled":
        np.savez(path, state=np.array({"update": 7}, dtype=object))
    elif damage != "missing":
        save_checkpoint(path, variables(x=np.arange(100)), {})
        content = bytearray(path.read_bytes())
        if damage == "truncated":
            del content[len(content) // 2 :]
        else:
            content[content.index(np.float32(50).tobytes())] ^= 1
        path.write_bytes(content)
    with pytest.raises(UserError, match="there is no checkpoint" if damage == "missing" else "is damaged"):
        load_checkpoint(path, variables(x=np.zeros(100)))
