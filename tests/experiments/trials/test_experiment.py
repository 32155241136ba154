import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

from experiments.reporting.speed import AGAIN
from experiments.trials.experiment import time_updates
from tests.experiments.trials.conftest import EXPERIMENT, Signs


@pytest.mark.slow
def test_every_row_is_timed_with_and_without_xla_and_layernorm_twice():
    found = time_updates(EXPERIMENT, Signs())
    assert found["seconds"].keys() == {"small"}
    for seconds in found["seconds"]["small"].values():
        assert list(seconds) == ["layernorm", "rmsnorm", AGAIN]
        assert np.all(np.array(list(seconds.values())) > 0)
        assert all(len(each) == 2 for each in seconds.values())
    assert list(found["seconds"]["small"]) == ["XLA", "plain"]
