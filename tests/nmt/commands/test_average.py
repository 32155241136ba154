"""`python -m nmt average`."""

import numpy as np


def test_kept_models_are_averaged(run, train, tmp_path):
    def table(path):
        with np.load(tmp_path / path) as saved:
            return saved["table"]

    assert train("--keep", 2, "--finish_after", 6, "--learning_rate", 0.1)[0] == 0
    kept = sorted(path.name for path in (tmp_path / "model" / "kept").iterdir())
    assert kept == ["4.npz", "6.npz"]
    assert run("average", "-m", "model", "--to", "mean")[::2] == (0, "mean: the average of updates 4, 6\n")
    expected = (table("model/kept/4.npz") + table("model/kept/6.npz")) / 2
    np.testing.assert_allclose(table("mean/best.npz"), expected, rtol=1e-6)
    assert run("translate", "-m", "mean", "-i", "dev.en", "-o", "out")[0] == 0
    said = run("average", "-m", "model", "--last", 3, "--to", "other")
    assert said[::2] == (2, "nmt: model holds 2 kept models; train with --keep 3\n")
