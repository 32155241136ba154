"""Figures 3 and 4: the part of the entries in the statistic, and another centre of the weights."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from ...reporting.intervals import signed, spread, t_interval
from ...reporting.judging import paired
from ...reporting.section import Section
from ..condition import Condition
from ..published import CENTRED, TABLE2
from ..results import Result

# By `Condition.moved`.
_MOVED = {"embeddings": "embeddings", "matrices": "other matrices", "all": "all"}

BySeed = Mapping[int, float]


def partial_section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the conditions with another part, or `None` without any."""
    tested = [each for each in results if each.condition.section != "centre"]
    bleu = _by_seed(tested, operator.attrgetter("bleu"))
    usual = {each.name: found for each, found in bleu.items() if each.section == "main"}
    changed = [each for each in bleu if each.section == "partial"]
    if not changed:
        return None
    options = results[0].log["options"]
    sizes = sorted({options["embedding_size"], options["state_size"], 2 * options["state_size"]})
    rows = []
    data = {}
    for each in changed:
        found = bleu[each]
        other = usual.get(each.step_size_of, {})
        dev = spread([result.dev for result in results if result.condition == each])
        prefixes = [str(prefix(size, each.partial)) for size in sizes]
        cells = [str(len(found)), dev, spread(list(found.values())), _told(found, other, 2)]
        rows.append([each.label, *prefixes, *cells])
        data[each.name] = {"seeds": len(found), "differences": paired(found, other, float)}
    return Section(
        name="partial",
        title="The part of the entries that gives the statistic (Figure 3)",
        text=[
            "pRMSNorm takes the root mean square of the first k = ceil(n p) of n entries. BLEU is "
            "over all test sets; (sd) is the standard deviation over the seeds. Differences to "
            "RMSNorm are paired by seed, with 95% intervals. Nothing is judged. The paper shows "
            "Figure 3 as a plot, without a vector drawing, so its values were not read off."
        ],
        columns=[
            "",
            *(f"k of {size}" for size in sizes),
            "seeds",
            "best dev BLEU",
            "BLEU",
            "minus RMSNorm",
        ],
        rows=rows,
        data=data,
    )


def prefix(size: int, p: float) -> int:
    """Returns k, the number of entries of the statistic. The arithmetic is exact: 10% of 30 is 3.

    >>> prefix(30, 0.1)
    3
    """
    return math.ceil(size * Fraction(str(p)))


def centre_section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the conditions with another centre; `None` without any.

    They are compared with those of Table 2.
    """
    dev = _by_seed(results, operator.attrgetter("dev"))
    moved = {each: found for each, found in dev.items() if each.section == "centre"}
    if not moved:
        return None
    kinds = {each.kind for each in moved}
    usual = {
        each: found for each, found in dev.items() if each.name in TABLE2 and each.kind in kinds
    }
    by_kind = {each.kind: found for each, found in usual.items()}
    layernorm = {each.moved: found for each, found in moved.items() if each.kind == "layernorm"}
    published = " and ".join(f"{best:.1f} with {name}" for name, best in CENTRED.items())
    rows = [[*_head(each, found, "none"), "", ""] for each, found in usual.items()]
    for each, found in moved.items():
        differences = [_told(found, by_kind.get(each.kind, {})), ""]
        if each.kind == "rmsnorm":
            differences[1] = _told(found, layernorm.get(each.moved, {}))
        rows.append([*_head(each, found, _MOVED[each.moved]), *differences])
    return Section(
        name="centre",
        title="Another centre of the initialisation (Figure 4)",
        text=[
            "Matrices are initialised as usual; then 0.2 is added to all entries of some of them: "
            "the embeddings, the other matrices in front of a norm, or all, with the attention's "
            "last vector. All else is as in Table 2. Differences are of best dev BLEU, paired by "
            "seed, with their 95% interval. What is judged is in the claims.",
            "The paper says only that the initial weights are centred at 0.2, not which; we "
            "compare it with the rows that move all. In the 30 validations of its Figure 4 (read "
            f"from the authors' vector drawing) the best BLEU is {published}.",
        ],
        columns=[
            "",
            "moved",
            "seeds",
            "best dev BLEU",
            "minus the usual centre",
            "RMSNorm minus LayerNorm",
        ],
        rows=rows,
        data={each.name: found for each, found in (usual | moved).items()},
    )


def _by_seed(
    results: Sequence[Result], value: Callable[[Result], float]
) -> dict[Condition, dict[int, float]]:
    found: dict[Condition, dict[int, float]] = {}
    for each in results:
        found.setdefault(each.condition, {})[each.seed] = value(each)
    return found


def _head(condition: Condition, found: BySeed, moved: str) -> list[str]:
    return [condition.label, moved, str(len(found)), spread(list(found.values()))]


def _told(one: BySeed, other: BySeed, digits: int = 1) -> str:
    """Returns the mean difference with its 95% interval as text, for the seeds that both have."""
    gains = paired(one, other, float)
    if len(gains) < 2:
        return f"{gains[0]:+.{digits}f} (1 seed)" if gains else ""
    return signed(t_interval(gains), digits)
