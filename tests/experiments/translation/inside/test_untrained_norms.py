import json
import sys

import pytest

from experiments.translation.inside.untrained_norms import main, measure_norms


@pytest.fixture(scope="module")
def norms():
    return measure_norms("layernorm", 64, 96)


def test_every_norm_of_the_model_is_measured(norms):
    assert len(norms) == 22
    assert norms["encoder.forward.gates_x_norm"]["units"] == 192
    assert norms["decoder.from_word.normalization"]["units"] == 64


def test_the_first_norms_get_sums_of_products_of_small_numbers(norms):
    """A sum of n products of two numbers of variance 1e-4 has the variance n 1e-8."""
    first = norms["encoder.forward.gates_x_norm"]
    assert first["mean_square"] == pytest.approx(64e-8, rel=0.1)
    assert first["rms"] == pytest.approx((64e-8 / (64e-8 + 1e-5)) ** 0.5, rel=0.1)


def test_a_norm_is_invariant_as_far_as_its_mean_square_exceeds_epsilon(norms):
    """Of a single row, y = x / sqrt(x**2 + e) and y' = 2 x / sqrt(4 x**2 + e)."""
    for name in ("encoder.forward.gates_x_norm", "encoder.backward.proposal_x_norm"):
        square = norms[name]["mean_square"]
        assert norms[name]["change"] == pytest.approx(2 * ((square + 1e-5) / (4 * square + 1e-5)) ** 0.5 - 1, rel=0.2)


@pytest.mark.slow
def test_the_command_writes_every_kind_and_size(tmp_path, monkeypatch):
    to = tmp_path / "found.json"
    given = ["--kinds", "layernorm", "--size", "4", "8", "--size", "8", "16", "--to", str(to)]
    monkeypatch.setattr(sys, "argv", ["untrained_norms", *given])
    main()
    found = json.loads(to.read_text())
    assert found["epsilon"] == 1e-5
    assert [(each["embedding_size"], each["state_size"]) for each in found["sizes"]] == [(4, 8), (8, 16)]
    assert all(list(each["norms"]) == ["layernorm"] for each in found["sizes"])
