import numpy as np
import pytest

from experiments.trials.clock import AGAIN, time_updates
from experiments.trials.trial import Setting
from tests.experiments.trials.conftest import ROWS, build, examples

SETTING = Setting("small", "batches of 4", batch_size=4, updates=4, window=2, validate_every=2)


@pytest.mark.slow
def test_every_row_is_timed_with_and_without_xla_and_layernorm_twice():
    found = time_updates(ROWS, {SETTING: examples(0, 4)}, lambda row, setting: build(row), rounds=2)
    assert found["seconds"].keys() == {"small"}
    for seconds in found["seconds"]["small"].values():
        assert list(seconds) == ["layernorm", "rmsnorm", AGAIN]
        assert np.all(np.array(list(seconds.values())) > 0)
        assert all(len(each) == 2 for each in seconds.values())
    assert list(found["seconds"]["small"]) == ["XLA", "plain"]
