"""A large epsilon of Adam and more updates, which let a model without a norm learn, for three
kinds."""

from ..condition import Condition

_OPTIONS = {"learning_rate": 0.01, "adam_epsilon": 0.001, "finish_after": 1800, "valid_freq": 300}
_KINDS = {"none": "without a norm", "layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}

CONDITIONS = [
    Condition(
        f"{kind}-recipe", f"{label} (Adam epsilon 0.001)", kind=kind, seeds=5, options=_OPTIONS
    )
    for kind, label in _KINDS.items()
]
