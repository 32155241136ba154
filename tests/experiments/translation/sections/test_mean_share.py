import pytest

from experiments.translation.condition import Condition
from experiments.translation.sections.shared import mean_share
from tests.experiments.translation.conftest import CONDITIONS, make_result


def shares(*by_update):
    """Returns the shares of the norms a and b after 0 updates, 20, and so on."""
    return {
        str(20 * number): dict(zip("ab", pair, strict=True))
        for number, pair in enumerate(by_update)
    }


@pytest.fixture
def measured():
    return [
        make_result(
            CONDITIONS["rmsnorm"], 1, mean_share=shares([0.01, 0.03], [0.05, 0.07], [0.1, 0.5])
        ),
        make_result(
            CONDITIONS["rmsnorm"], 2, mean_share=shares([0.01, 0.03], [0.07, 0.09], [0.3, 0.5])
        ),
    ]


def test_the_table_has_the_mean_over_norms_by_update_and_their_last_range(measured):
    found = mean_share(measured)
    assert found.columns[2:] == ["N = 0", "N = 20", "N = 40", "norms, at the end"]
    assert found.rows == [["RMSNorm", "2", "2.0%", "7.0%", "35.0%", "20.0% to 50.0%"]]


def test_the_end_of_a_post_norm_stack_has_no_norm():
    measured = {
        "0": {"encoder.layer_1.norm": 0.1, "encoder.final_norm": 0.9, "decoder.final_norm": 0.9}
    }

    def share(position):
        condition = Condition(
            "none", "none", kind="none", options={"transformer_norm_position": position}
        )
        return mean_share(
            [make_result(condition, options=condition.options, mean_share=measured)]
        ).rows[0][2]

    assert share("post") == "10.0%"
    assert share("pre") == "63.3%"


def test_an_update_that_a_seed_lacks_is_left_out(measured):
    short = make_result(CONDITIONS["rmsnorm"], 3, mean_share=shares([0.01, 0.03], [0.1, 0.2]))
    other = make_result(
        CONDITIONS["layernorm"], 1, mean_share=shares([0.01, 0.03], [0.1, 0.2], [0.2, 0.4])
    )
    cells = {cells[0]: cells[2:] for cells in mean_share([*measured, short, other]).rows}
    assert cells["RMSNorm"][2] == ""
    assert cells["LayerNorm"][2] == "30.0%"


def test_without_measurements_there_is_no_section(results):
    assert mean_share(results) is None
