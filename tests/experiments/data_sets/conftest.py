from tests.experiments.data_sets.digits import digits  # noqa: F401  a fixture
