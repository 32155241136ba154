"""Lines of random points."""

import numpy as np
import pytest

FORMS = 40


@pytest.fixture
def arrays():
    """The arrays of a file with two lines of each form; the second is too short."""
    generator = np.random.default_rng(0)
    lengths = np.array([520, 80] * FORMS, np.int32)
    points = lengths.sum()
    return {
        "dx": generator.normal(5, 20, points).astype(np.int16),
        "dy": generator.normal(0, 40, points).astype(np.int16),
        "pen_up": (generator.random(points) < 0.05).astype(np.uint8),
        "lengths": lengths,
        "names": np.array(
            [f"a{form // 2:02d}-000u-{form % 2 + 1:02d}" for form in range(2 * FORMS)]
        ),
    }


@pytest.fixture
def file(arrays, tmp_path):
    np.savez(tmp_path / "lines.npz", **arrays)
    return tmp_path / "lines.npz"
