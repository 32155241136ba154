import numpy as np
import pytest

from experiments.handwriting.data import LONGEST, read_lines
from nmt.errors import UserError
from tests.experiments.handwriting.conftest import FORMS


def test_lines_are_the_points_after_the_first_in_units_of_their_deviation(arrays, file):
    found = read_lines(str(file))
    assert [len(part) for part in found] == [FORMS - 4, 2, 2]
    np.testing.assert_allclose(
        found.train[..., :2].std((0, 1), dtype=np.float64), [1, 1], rtol=1e-6
    )
    points = np.stack([arrays["dx"], arrays["dy"], arrays["pen_up"]], -1).astype(float)
    starts = [600 * form + 1 for form in range(FORMS)]  # each form has 520 + 80 points
    originals = {
        tuple(points[start : start + LONGEST, 2]): points[start : start + LONGEST]
        for start in starts
    }
    lines = np.concatenate(found)
    ours = np.stack([originals.pop(tuple(line[:, 2])) for line in lines])  # each line comes once
    deviation = ours[: FORMS - 4, :, :2].std((0, 1))
    np.testing.assert_allclose(lines[..., :2], ours[..., :2] / deviation, rtol=1e-4)


def test_all_lines_of_a_form_are_in_one_part(arrays, tmp_path):
    arrays["lengths"] = np.array([600] * FORMS, np.int32)
    arrays["names"] = np.array(
        [f"a{form // 2:02d}-000u-{form % 2:02d}" for form in range(FORMS)]
    )  # two lines a form
    np.savez(tmp_path / "lines.npz", **arrays)
    parts = read_lines(str(tmp_path))
    assert [len(part) for part in parts] == [FORMS - 4, 2, 2]
    numbers = {
        tuple(arrays["pen_up"][600 * i + 1 : 600 * i + 1 + LONGEST]): i // 2 for i in range(FORMS)
    }
    forms = []
    for part in parts:
        forms.append({numbers[tuple(line[:, 2])] for line in part})
    assert sum(map(len, forms)) == len(set().union(*forms))


def test_a_wrong_file_is_one_line(arrays, tmp_path):
    def said():
        with pytest.raises(UserError) as error:
            read_lines(str(tmp_path))
        return str(error.value)

    for name in ("lengths", "dx"):
        np.savez(tmp_path / "lines.npz", **{**arrays, name: arrays[name][1:]})
        assert "lengths and names do not fit" in said()
    few = {
        name: array[:600] if len(array) > 2 * FORMS else array[:2] for name, array in arrays.items()
    }
    np.savez(tmp_path / "lines.npz", **few)
    assert "has 1 forms with lines of more than 500" in said()
