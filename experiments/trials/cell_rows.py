"""The kinds of normalization of both papers inside `RMSNormGRU` and `RMSNormLSTM`."""

from typing import Any

from nmt.errors import UserError

from .trial import TrialRow

EPSILON = 1e-5  # of all kinds

CELL_ROWS = (
    TrialRow("none", "without a norm", None, paper=True, options={"normalization": None}),
    TrialRow("layernorm", "LayerNorm", None, paper=True, options={"normalization": "layer", "epsilon": EPSILON}),
    TrialRow("rmsnorm", "RMSNorm", None, paper=True, options={"normalization": "rms", "epsilon": EPSILON}),
    TrialRow(
        "prmsnorm",
        "pRMSNorm, p = 6.25%",
        None,
        paper=True,
        options={"normalization": "rms", "partial": 0.0625, "epsilon": EPSILON},
    ),
)


def cell_options(row: TrialRow) -> dict[str, Any]:
    """Returns the arguments that a row gives to the recurrent layers of a task.

    Raises:
        UserError: The row has a norm of its own, which these layers do not take.
    """
    if row.norm:
        raise UserError(
            f"row {row.name}: recurrent layers build their norms by themselves; give options= instead of norm"
        )
    return dict(row.options)
