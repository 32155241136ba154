"""The recurrent batch normalization of Cooijmans et al. (2016), which both papers compare with."""

from ...trials.kinds import EPSILON
from ...trials.trial import TrialRow

_LSTM = {"normalization": "batch", "epsilon": EPSILON}

ROWS = [
    TrialRow("batchnorm", "BN-LSTM", None, paper=True, options=_LSTM),
    TrialRow(
        "batchnorm-everywhere",
        "BN-everywhere",
        None,
        options={**_LSTM, "normalize_attention": True},
    ),
]
