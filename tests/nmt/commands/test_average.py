"""`python -m nmt average`."""

import itertools

import numpy as np
import pytest

from tests.nmt.outcomes import refused, weights


@pytest.mark.slow
def test_the_best_models_are_kept_beside_the_latest_and_averaged(run, train, tmp_path):
    """By the loss, which falls as long as the learning rate is small and rises once it is huge."""
    keep = ("--keep", 1, "--keep_best", 2, "--valid_metric", "loss", "--valid_freq", 2)
    assert train(*keep, "--finish_after", 6, "--learning_rate", 0.01)[0] == 0
    kept = tmp_path / "model" / "kept"
    assert sorted(path.name for path in kept.iterdir()) == ["4.npz", "6.npz"]
    assert train(*keep, "--finish_after", 12, "--learning_rate", 100.0)[0] in (0, 2)
    assert sorted(path.name for path in kept.iterdir()) == ["12.npz", "4.npz", "6.npz"]
    for option, count, models in (("--best", 2, "4.npz, model/kept/6"), ("--last", 1, "12")):
        said = run("average", "-m", "model", option, count, "--to", option[2:])[2]
        assert said.endswith(f" of model/kept/{models}.npz\n")
    for options, which in (
        (("--last", 2), "2 latest"),
        (("--best", 3), "3 best"),
        (("--best", 9), "9 best"),
    ):
        assert f"3 kept models, but not those of the {which} " in refused(
            run("average", "-m", "model", *options, "--to", "other")
        )
    assert "--last: not allowed with argument --best" in refused(
        run("average", "-m", "model", "--best", 1, "--last", 1, "--to", "other")
    )


def test_kept_models_are_averaged(run, train, tmp_path):
    assert train("--keep", 2, "--finish_after", 6, "--learning_rate", 0.1)[0] == 0
    kept = sorted(path.name for path in (tmp_path / "model" / "kept").iterdir())
    assert kept == ["4.npz", "6.npz"]
    assert run("average", "-m", "model", "--to", "mean")[0] == 0
    expected = (
        weights(tmp_path / "model/kept/4.npz")["table"]
        + weights(tmp_path / "model/kept/6.npz")["table"]
    ) / 2
    np.testing.assert_allclose(weights(tmp_path / "mean/best.npz")["table"], expected, rtol=1e-6)
    assert run("translate", "-m", "mean", "-i", "dev.en", "-o", "out")[0] == 0
    said = refused(run("average", "-m", "model", "--last", 3, "--to", "other"))
    assert said.endswith("; train with --keep 3\n")
    assert run("average", "-m", "mean", "--last", 1, "--to", "other")[2].startswith(
        "nmt: mean/progress.json cannot be"
    )
    assert run("average", "-m", "none", "--to", "other")[2].startswith("nmt: none holds no model: ")


@pytest.mark.slow
def test_a_training_resumed_without_keep_leaves_the_models_of_before(run, train, tmp_path):
    kept = tmp_path / "model" / "kept"
    assert train("--keep", 1)[0] == 0
    (kept / ".2.npz.01234567.part").write_text("of a killed process")
    assert train("--finish_after", 4)[0] == 0
    assert [path.name for path in kept.iterdir()] == ["2.npz"]
    said = run("average", "-m", "model", "--last", 1, "--to", "other")
    assert said[0] == 2
    assert "1 latest validations" in said[2]


@pytest.mark.slow
def test_models_of_several_trainings_are_averaged(run, train, tmp_path):
    """The best of each, or some of each.

    The trainings may differ in all but vocabularies and architecture.
    """

    for name, seed in (("one", 1), ("two", 2)):
        assert (
            train("--keep", 2, "--finish_after", 4, "--learning_rate", 0.1, "--seed", seed)[0] == 0
        )
        (tmp_path / "model").rename(tmp_path / name)
    status, _, said = run("average", "-m", "one", "two", "--to", "both")
    assert (status, said.endswith(" one/best.npz, two/best.npz\n")) == (0, True)
    np.testing.assert_allclose(
        weights(tmp_path / "both/best.npz")["table"],
        (weights(tmp_path / "one/best.npz")["table"] + weights(tmp_path / "two/best.npz")["table"])
        / 2,
        rtol=1e-6,
    )
    assert run("average", "-m", "one", "two", "--last", 2, "--to", "four")[0] == 0
    kept = itertools.product(("one", "two"), (2, 4))
    four = [weights(tmp_path / f"{name}/kept/{update}.npz")["table"] for name, update in kept]
    np.testing.assert_allclose(
        weights(tmp_path / "four/best.npz")["table"], sum(four) / 4, rtol=1e-6
    )
    assert "no checkpoint none/best.npz" in refused(
        run("average", "-m", "one", "none", "--to", "other")
    )
