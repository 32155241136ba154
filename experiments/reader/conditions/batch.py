"""The recurrent batch normalization of Cooijmans et al. (2016), which both papers compare with."""

from ...runs.kinds import EPSILON
from ...runs.run import Condition

_LSTM = {"normalization": "batch", "epsilon": EPSILON}

CONDITIONS = [
    Condition("batchnorm", "BN-LSTM", None, paper=True, options=_LSTM),
    Condition(
        "batchnorm-everywhere",
        "BN-everywhere",
        None,
        options={**_LSTM, "normalize_attention": True},
    ),
]
