"""Three kinds with a large epsilon of Adam and more updates.

A model without a norm learns then.
"""

from ..condition import Condition

_OPTIONS = {"learning_rate": 0.01, "adam_epsilon": 0.001, "finish_after": 1800, "valid_freq": 300}
_KINDS = {"none": "without a norm", "layernorm": "LayerNorm", "rmsnorm": "RMSNorm"}

CONDITIONS = [
    Condition(
        f"{kind}-recipe", f"{label} (Adam epsilon 0.001)", kind=kind, seeds=5, options=_OPTIONS
    )
    for kind, label in _KINDS.items()
]
