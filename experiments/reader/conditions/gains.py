"""Initial gains of 0.1, which batch normalization needs.

Ba et al. (2016) find that LayerNorm is better with 1.
"""

from dataclasses import replace

from ...runs.kinds import CELL_CONDITIONS

CONDITIONS = [
    replace(
        condition,
        name=f"{condition.name}-gain-0.1",
        label=f"{condition.label}, gains of 0.1",
        paper=False,
        options={**condition.options, "gain": 0.1},
    )
    for condition in CELL_CONDITIONS
    if condition.name in ("layernorm", "rmsnorm")
]
