"""Tests whether translations by one kind of normalization are better than by another."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sacrebleu import BLEU
from sacrebleu.significance import PairedTest

from nmt.metrics import read_lines

from .results import Result

PAIRS = (("layernorm", "rmsnorm"), ("baseline", "rmsnorm"))  # names of rows
SAMPLES = 1000


class Comparison(NamedTuple):
    """Two systems on a test set, first and second in each pair of numbers."""

    first: Result
    second: Result
    test: str
    bleu: tuple[float, float]
    half_width: tuple[float, float]  # of the interval that holds 95% of the samples' BLEU
    p: float
    signature: str  # sacreBLEU's, of the metric and the samples


def measure(results: Sequence[Result], references: Mapping[str, Path]) -> list[Comparison]:
    """Returns sacreBLEU's paired bootstrap test for each pair of rows, test set and seed that both are done with.

    Args:
        results: What is done.
        references: The reference translation of each test set.

    Reference: Koehn (2004), Statistical significance tests for machine translation evaluation.
    """
    table = {(each.row.name, each.seed): each for each in results}
    return [
        _compare(table[first, seed], table[second, seed], test, path)
        for first, second in PAIRS
        for test, path in references.items()
        for name, seed in sorted(table)
        if name == first and (second, seed) in table
    ]


def _compare(first: Result, second: Result, test: str, path: Path) -> Comparison:
    systems = [(each.row.name, each.translations[test]) for each in (first, second)]
    paired = PairedTest(systems, {"BLEU": BLEU()}, [read_lines(path)], test_type="bs", n_samples=SAMPLES)
    signatures, scores = paired()
    one, other = scores["BLEU"]
    bleu, half_width = (one.score, other.score), (one.ci, other.ci)
    return Comparison(first, second, test, bleu, half_width, other.p_value, str(signatures["BLEU"]))
