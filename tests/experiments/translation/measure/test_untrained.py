from experiments.translation.measure.untrained import measure_initial_scale, read_initial_scale
from tests.experiments.translation.conftest import INITIAL_SCALE


def test_the_norms_of_our_size_and_the_papers_are_measured_once(corpus, place, ran):
    assert read_initial_scale(place) is None
    for _ in range(2):
        measure_initial_scale(corpus, place)
    assert read_initial_scale(place) == {**INITIAL_SCALE, "commit": "0123456789ab"}
    (command,) = ran
    assert "--kinds layernorm rmsnorm --size 4 8 --size 512 1024" in " ".join(command)
