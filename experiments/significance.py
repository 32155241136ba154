"""Tests whether translations by one kind of normalization are better than by another."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sacrebleu import BLEU
from sacrebleu.significance import PairedTest

from .results import Result
from .runs import read_lines

PAIRS = (("layernorm", "rmsnorm"), ("none", "rmsnorm"))
SAMPLES = 1000


def measure(results: Sequence[Result], references: dict[str, Path]) -> list[dict[str, Any]]:
    """Returns sacreBLEU's paired bootstrap test for each pair of kinds, test set and seed that both are done with.

    Args:
        results: What is done.
        references: The reference translation of each test set.

    Reference: Koehn (2004), Statistical significance tests for machine translation evaluation.
    """
    table = {(each.row.kind, each.seed): each for each in results if each.row.section == "table2" and each.row.kind}
    return [
        {"from": first, "to": second, "test": test, "seed": seed, **_compare(table, first, second, seed, test, path)}
        for first, second in PAIRS
        for test, path in references.items()
        for seed in sorted({seed for kind, seed in table if kind == first} & {s for k, s in table if k == second})
    ]


def _compare(table, first: str, second: str, seed: int, test: str, path: Path) -> dict[str, Any]:
    systems = [(kind, table[kind, seed].translations[test]) for kind in (first, second)]
    paired = PairedTest(systems, {"BLEU": BLEU()}, [read_lines(path)], test_type="bs", n_samples=SAMPLES)
    base, other = paired()[1]["BLEU"]
    return {"bleu": [base.score, other.score], "half_width": [base.ci, other.ci], "p": other.p_value}
