"""Initial gains of 0.1, which batch normalization needs. Ba et al. (2016) find that LayerNorm is better with 1."""

from dataclasses import replace

from ...trials.kinds import CELL_ROWS

_KINDS = {row.name: row for row in CELL_ROWS}


def _with_small_gains(name):
    row = _KINDS[name]
    return replace(
        row,
        name=f"{name}-gain-0.1",
        label=f"{row.label}, gains of 0.1",
        paper=False,
        options={**row.options, "gain": 0.1},
    )


ROWS = [_with_small_gains(name) for name in ("layernorm", "rmsnorm")]
