import pytest

from experiments.runs.experiment import order, train
from experiments.runs.run import Run
from tests.experiments.runs.conftest import CONDITIONS, SETTING, Signs

TRIAL = Run(CONDITIONS[1], SETTING, seed=1, step_size=0.01)


@pytest.fixture(scope="module")
def whole():
    return train(TRIAL, Signs())


@pytest.mark.slow
def test_losses_and_validations_follow_the_setting(whole):
    assert [each["update"] for each in whole["train"]] == [2, 4, 6, 8, 10]
    assert [each["update"] for each in whole["validations"]] == [4, 8, 10]
    assert whole["validations"][-1]["nll"] < whole["validations"][0]["nll"]
    assert whole["seconds"] > 0


def test_every_epoch_has_all_examples_in_its_own_order():
    epochs = order(1, 0, 30, 10).reshape(3, 10)
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert list(order(1, 7, 16, 10)) == list(epochs.flatten()[7:23])
    assert list(order(2, 0, 10, 10)) != list(epochs[0])
