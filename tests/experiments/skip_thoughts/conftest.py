from tests.experiments.data_sets.novels import novels  # noqa: F401  a fixture
