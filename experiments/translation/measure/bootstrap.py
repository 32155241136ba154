"""Compares translations of two rows by paired bootstrap tests and keeps the results with the logs."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sacrebleu import BLEU
from sacrebleu.significance import PairedTest

from nmt.decoding.metrics import read_lines
from nmt.storage.files import atomic_write

from ..place import Place
from ..results import Result

PAIRS = (  # names of rows that should translate alike
    ("layernorm", "rmsnorm"),
    ("post-layernorm", "post-rmsnorm"),
    ("pre-layernorm", "pre-rmsnorm"),
)
SAMPLES = 1000
KEPT = "significance.json"


class Comparison(NamedTuple):
    """A comparison of two rows on a test set. A pair of numbers has the first row's, then the second's."""

    first: str  # a row's name
    second: str
    seed: int
    test: str
    bleu: Sequence[float]
    p: float
    signature: str  # of sacreBLEU, for the metric and the samples


def compare_pairs(results: Sequence[Result], references: Mapping[str, Path], place: Place) -> list[Comparison]:
    """Returns sacreBLEU's paired bootstrap test for each pair of rows, test set and seed, if both runs are done.

    A kept result is re-used if BLEU and the number of samples are the same.

    Args:
        results: The results so far.
        references: Reference translation of each test set. For a test set without one, only kept results are returned.
        place: Where the logs are.

    Raises:
        UserError: A translation is missing.

    Reference: Koehn (2004), Statistical significance tests for machine translation evaluation.
    """
    done = {(each.row.name, each.seed): each for each in results}
    kept = {each[:4]: each for each in _read(place)}
    found = []
    for first, second in PAIRS:
        for seed in sorted(seed for name, seed in done if name == first and (second, seed) in done):
            pair = done[first, seed], done[second, seed]
            for test in pair[0].log["tests"]:
                known = kept.get((first, second, seed, test))
                if known and _holds(known, [each.test(test) for each in pair]):
                    found.append(known)
                elif test in references:
                    found.append(_compare(*pair, test, references[test]))
    if found != list(kept.values()):
        with atomic_write(place.logs / KEPT) as file:
            json.dump([each._asdict() for each in found], file, indent=2)
            file.write("\n")
    return found


def _holds(known: Comparison, bleu: Sequence[float]) -> bool:
    return list(known.bleu) == list(bleu) and f"bs:{SAMPLES}|" in known.signature


def _read(place: Place) -> list[Comparison]:
    path = place.logs / KEPT
    return [Comparison(**each) for each in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def _compare(first: Result, second: Result, test: str, reference: Path) -> Comparison:
    systems = [(each.row.name, read_lines(each.translations[test])) for each in (first, second)]
    paired = PairedTest(systems, {"BLEU": BLEU()}, [read_lines(reference)], test_type="bs", n_samples=SAMPLES)
    signatures, scores = paired()
    one, other = scores["BLEU"]
    names = first.row.name, second.row.name, first.seed, test
    return Comparison(*names, [one.score, other.score], other.p_value, str(signatures["BLEU"]))
