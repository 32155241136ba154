"""Tables 2 and 4: BLEU of every kind of normalization."""

from collections.abc import Iterable, Sequence

from ...reporting.intervals import spread
from ...reporting.section import Claim, Section
from ..condition import Condition
from ..published import FAILS, RESULTS, TABLES
from ..results import Result, by_condition

_FAILED = 1.0  # dev BLEU below which a training has failed
_MEANT = {"layer_normalization_type", "seed"}  # options that differ between conditions

_DEFAULTS = {"learning_rate": "default", "adam_epsilon": "1e-08"}  # of `nmt train`

Scores = dict[str, list[float]]  # BLEU of each seed, by `dev` and test set


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section of the main conditions, or `None` without any."""
    conditions = by_condition(result for result in results if result.condition.section == "main")
    if not conditions:
        return None
    table = TABLES[next(iter(conditions)).model_type]
    log = next(iter(conditions.values()))[0].log
    tests = log["tests"]
    scores = {condition: _scores(done, tests) for condition, done in conditions.items()}
    cells = [_cells(condition, done, scores[condition]) for condition, done in conditions.items()]
    beam = log["options"].get("beam_size", 5)
    signature = next(iter(tests.values()))["signature"]
    return Section(
        name=table.lower().replace(" ", ""),
        title=f"Translation quality ({table})",
        text=[
            f"BLEU: sacreBLEU `{signature}`, cased and detokenised, beam size {beam}. With "
            "several seeds, it is their mean with the standard deviation (sd). The checkpoint of "
            "the best validation is tested.",
            *_on_options(conditions),
        ],
        columns=list(cells[0]),
        rows=[list(each.values()) for each in cells],
        data={condition.name: found for condition, found in scores.items()},
        claims=_on_failure(conditions),
    )


def _scores(done: Sequence[Result], tests: Iterable[str]) -> Scores:
    found = {"dev": [each.dev for each in done]}
    for test in tests:
        found[test] = [each.test(test) for each in done]
    return found


def _on_failure(conditions: dict[Condition, list[Result]]) -> list[Claim]:
    """Judges whether a Transformer without a norm fails to train."""
    failing = next(
        (done for condition, done in conditions.items() if condition.name == FAILS), None
    )
    if failing is None:
        return []
    found = [each.dev for each in failing]
    updates = failing[0].log["validations"][-1]["update"]
    return [
        Claim(
            "Table 4: a Transformer without a norm fails to train",
            "it fails",
            f"best dev BLEU {', '.join(f'{bleu:.1f}' for bleu in found)}, {len(found)} seeds, "
            f"{updates:,} updates",
            f"{'shown' if max(found) < _FAILED else 'the opposite'} for {updates:,} updates and "
            "these initial weights",
        )
    ]


def _on_options(conditions: dict[Condition, list[Result]]) -> list[str]:
    """Names the options in which conditions differ from LayerNorm, or else from the first."""
    usual = next(
        (condition for condition in conditions if condition.name == "layernorm"),
        next(iter(conditions)),
    )
    labels: dict[str, list[str]] = {}  # by their options
    for condition, done in conditions.items():
        labels.setdefault(differences(done[0], conditions[usual][0]), []).append(condition.label)
    own = []
    for options, names in labels.items():
        several = f"{', '.join(names[:-1])} and {names[-1]} have"
        if options:
            own.append(f"{several if names[1:] else f'{names[0]} has'} {options}")
    if not own:
        return []
    return [
        f"All rows have the options of {usual.label}, apart from the norm. "
        f"Exceptions: {'; '.join(own)}."
    ]


def _cells(condition: Condition, done: Sequence[Result], found: Scores) -> dict[str, str]:
    """Returns the cells of a condition by the heads of their columns."""
    options = done[0].log["options"]
    return {
        "": condition.label,
        "seeds": str(len(done)),
        "learning rate, Adam's epsilon": ", ".join(
            str(options.get(name, default)) for name, default in _DEFAULTS.items()
        ),
        **{f"{name} BLEU, tested checkpoint": spread(values) for name, values in found.items()},
        "dev BLEU, last checkpoint": spread([each.log["validations"][-1]["bleu"] for each in done]),
        "paper: BLEU 2014, 2017": ", ".join(map(str, RESULTS[condition.name].bleu))
        if condition.name in RESULTS
        else "",
    }


def differences(one: Result, other: Result) -> str:
    """Returns the options that differ between two trainings, as part of a sentence.

    Their norm, their seed, and a learning rate that a grid has chosen do not count. Empty if none
    differs.
    """
    ours = one.log["options"]
    theirs = other.log["options"]
    meant = _MEANT | (
        {"learning_rate"}
        if one.log["step_size_chosen"] and other.log["step_size_chosen"]
        else set()
    )
    names = sorted(
        name for name in (ours.keys() | theirs.keys()) - meant if ours.get(name) != theirs.get(name)
    )
    default = "the default"
    return " and ".join(
        f"`{name}` {ours.get(name, default)} instead of {theirs.get(name, default)}"
        for name in names
    )
