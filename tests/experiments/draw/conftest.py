from tests.experiments.data_sets.digits import folder  # noqa: F401  a fixture
