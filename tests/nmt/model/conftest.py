"""Random numbers that do not depend on the order of the tests."""

import numpy as np
import pytest

from tests.nmt.model import blocks


@pytest.fixture(autouse=True)
def _same_random_numbers():
    blocks.RNG.bit_generator.state = np.random.PCG64(0).state
