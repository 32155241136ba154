"""The paper's Table 4, translation with a Transformer: each kind after the residual sums, and two kinds before them.

A row without a norm takes steps smaller than those of a grid: only large ones might make it diverge. Two rows have more
updates, because models with norms after the residual sums learn slowly.
"""

from ..row import Row

_KINDS = {"none": "without a norm", "layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "prmsnorm": "pRMSNorm"}


def _row(position: str, kind: str) -> Row:
    return Row(
        f"{position}-{kind}",
        f"{_KINDS[kind]} ({position})",
        kind=kind,
        seeds=3,
        options={"transformer_norm_position": position},
        model_type="transformer",
    )


_SMALL_STEPS = Row(
    "post-none-small-steps",
    "without a norm (post, small steps)",
    kind="none",
    options={"transformer_norm_position": "post", "learning_rate": 0.0001},
    model_type="transformer",
)


def _longer(kind: str) -> Row:
    return Row(
        f"post-{kind}-longer",
        f"{_KINDS[kind]} (post, 1,800 updates)",
        kind=kind,
        seeds=3,
        options={"transformer_norm_position": "post", "learning_rate": 0.003, "finish_after": 1800, "valid_freq": 300},
        model_type="transformer",
    )


ROWS = [
    *(_row("post", kind) for kind in _KINDS),
    *(_row("pre", kind) for kind in ("layernorm", "rmsnorm")),
    _SMALL_STEPS,
    *(_longer(kind) for kind in ("layernorm", "rmsnorm")),
]
