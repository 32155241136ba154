import pytest

from experiments.runs.fitting import order, train
from experiments.runs.run import Run
from tests.experiments.runs.conftest import CONDITIONS, SETTING, Signs

TRIAL = Run(CONDITIONS[1], SETTING, seed=1, step_size=0.01)


class Interruption(Exception):
    pass


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return train(TRIAL, Signs(), tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
def test_losses_and_validations_follow_the_setting(whole):
    assert [each["update"] for each in whole["train"]] == [2, 4, 6, 8, 10]
    assert [each["update"] for each in whole["validations"]] == [4, 8, 10]
    assert whole["validations"][-1]["nll"] < whole["validations"][0]["nll"]
    assert whole["seconds"] > 0


@pytest.mark.parametrize(
    "after", [pytest.param(1, marks=pytest.mark.slow), 3, pytest.param(4, marks=pytest.mark.slow)]
)
def test_an_interrupted_training_ends_as_an_uninterrupted_one(whole, after, tmp_path):
    """With dropout: its random numbers continue too."""
    windows = iter(range(100))

    class Interrupted(Signs):
        def batch(self, numbers, setting):
            if next(windows) == after:
                raise Interruption
            return super().batch(numbers, setting)

    with pytest.raises(Interruption):
        train(TRIAL, Interrupted(), tmp_path)
    continued = train(TRIAL, Signs(), tmp_path)
    for part in ("train", "validations"):
        for one, other in zip(continued[part], whole[part], strict=True):
            assert one == pytest.approx(other, rel=1e-6)
    for when, shares in whole["mean_share"].items():
        assert continued["mean_share"][when] == pytest.approx(shares, rel=1e-5)


def test_only_the_last_checkpoint_stays(tmp_path):
    train(TRIAL, Signs(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000010.json", "000000010.keras"]


def test_every_epoch_has_all_examples_in_its_own_order():
    epochs = order(1, 0, 30, 10).reshape(3, 10)
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert list(order(1, 7, 16, 10)) == list(epochs.flatten()[7:23])
    assert list(order(2, 0, 10, 10)) != list(epochs[0])
