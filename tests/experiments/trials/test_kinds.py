import pytest

from experiments.trials.kinds import CELL_ROWS, cell_options
from experiments.trials.trial import TrialRow
from nmt.errors import UserError
from rmsnorm_tf import RMSNormGRU, RMSNormLSTM


@pytest.mark.parametrize("row", CELL_ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("layer", [RMSNormGRU, RMSNormLSTM])
def test_options_are_arguments_of_recurrent_layers(row, layer):
    cell = layer(4, **cell_options(row)).cell
    assert cell.normalization == {"none": None, "layernorm": "layer"}.get(row.name, "rms")
    assert cell.epsilon == 1e-5 or row.name == "none"
    assert cell.partial == (0.0625 if row.name == "prmsnorm" else None)


def test_a_norm_of_its_own_is_refused():
    with pytest.raises(
        UserError, match="row mine: recurrent layers build their norms by themselves; give options="
    ):
        cell_options(TrialRow("mine", "Mine", lambda name: None))
