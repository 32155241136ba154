import pytest

from experiments.runs.kinds import CELL_CONDITIONS, cell_options
from experiments.runs.run import Condition
from nmt.errors import UserError
from rmsnorm_tf import RMSNormGRU, RMSNormLSTM


@pytest.mark.parametrize("condition", CELL_CONDITIONS, ids=lambda condition: condition.name)
@pytest.mark.parametrize("layer", [RMSNormGRU, RMSNormLSTM])
def test_options_are_arguments_of_recurrent_layers(condition, layer):
    cell = layer(4, **cell_options(condition)).cell
    assert cell.normalization == {"none": None, "layernorm": "layer"}.get(condition.name, "rms")
    assert cell.epsilon == 1e-5 or condition.name == "none"
    assert cell.partial == (0.0625 if condition.name == "prmsnorm" else None)


def test_a_norm_of_its_own_is_refused():
    with pytest.raises(UserError, match=r"condition mine: .* give options="):
        cell_options(Condition("mine", "Mine", lambda name: None))
