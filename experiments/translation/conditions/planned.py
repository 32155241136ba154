"""The conditions of experiments/PLAN.md, with seeds that no earlier training had."""

from ..condition import Condition

_KINDS = {"layernorm": "LayerNorm", "rmsnorm": "RMSNorm", "prmsnorm": "pRMSNorm"}
_FIRST = 101


def _rows(corpus: str, model: str, model_type: str, **seeds: int) -> list[Condition]:
    return [
        Condition(
            f"{corpus}-{kind}",
            f"{_KINDS[kind]}, {model}",
            kind=kind,
            seeds=count,
            first_seed=_FIRST,
            corpora=(corpus,),
            model_type=model_type,
        )
        for kind, count in seeds.items()
    ]


CONDITIONS = [
    *_rows("multi30k_rnn", "RNN", "rnn", layernorm=8, rmsnorm=8, prmsnorm=8),
    *_rows("multi30k_post", "post-norm", "transformer", layernorm=6, rmsnorm=6),
    *_rows("multi30k_pre", "pre-norm", "transformer", layernorm=5, rmsnorm=5, prmsnorm=3),
]
