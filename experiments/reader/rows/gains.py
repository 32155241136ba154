"""Initial gains of 0.1, which batch normalization needs.

Ba et al. (2016) find that LayerNorm is better with 1.
"""

from dataclasses import replace

from ...trials.kinds import CELL_ROWS

ROWS = [
    replace(
        row,
        name=f"{row.name}-gain-0.1",
        label=f"{row.label}, gains of 0.1",
        paper=False,
        options={**row.options, "gain": 0.1},
    )
    for row in CELL_ROWS
    if row.name in ("layernorm", "rmsnorm")
]
