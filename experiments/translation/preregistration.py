"""Reports on a preregistration: claims judged together, all measures, the values of each kind."""

import math
from collections.abc import Callable, Sequence
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

from ..reporting.differences import differences_section
from ..reporting.intervals import signed, spread, t_interval
from ..reporting.judging import RULE, Question, judge
from ..reporting.section import Section
from ..reporting.writer import write_report
from .baseline import Store
from .claims import MEASURES, Contrast
from .condition import Condition
from .corpus import read_corpus
from .results import Result, by_condition, read_results
from .schedule import corpus_runs, read_conditions


class Preregistration(NamedTuple):
    """Declares trainings with what is asked of them, before the first one is made."""

    title: str  # title of the report
    page: str  # where it was published, with its commit
    corpora: Sequence[str]  # names of the corpora that it trains, in order
    about: str  # what was trained, in words
    text: str  # how its claims are judged
    questions: Callable[
        [Sequence[Result]], list[Question]
    ]  # returns the claims with what the results have of them
    contrasts: Sequence[Contrast]  # the differences that are reported in all measures
    measures: Sequence[str]  # names of the measures
    note: str  # what to know of the measures

    def report(self, root: Path, failed: Sequence[str] = ()) -> Path | None:
        """Writes the report on the logs below a root, and returns its folder; `None` without any.

        Raises:
            UserError: A log has other options than the preregistration.
        """
        results = []
        wanted = 0
        for name in self.corpora:
            corpus = read_corpus(name)
            runs = corpus_runs(corpus)
            results = results + read_results(runs, corpus, Store(name, root))
            wanted = wanted + len(runs)
        if not results:
            return None
        plan = f"The plan, {self.page}, was there before the first of these trainings"
        text = f"{RULE} {plan}; no seed was added later"
        about = [
            self.about,
            *([f"Failed, and not reported: {', '.join(failed)}."] if failed else []),
            f"{len(results)} of {wanted} trainings are done.",
        ]
        sections = [
            differences_section(
                judge(self.questions(results)), f"{text}. {self.text}", "RMSNorm and LayerNorm"
            ),
            self._measures(results),
            _values(results, list(corpus.tests)),
        ]
        folder = Store(self.corpora[0], root).report
        write_report(
            folder, self.title, about, {"about": about}, [each for each in sections if each]
        )
        return folder

    def _measures(self, results: Sequence[Result]) -> Section:
        """Returns the section of the differences in every measure.

        It has the contrasts that have all their seeds.
        """
        seeds = {condition.name: condition.seeds for condition in read_conditions()}
        conditions = []
        data = []
        for contrast in self.contrasts:
            found = {
                name: contrast.differences(results, MEASURES[name].value) for name in self.measures
            }
            count = min(seeds[name] for name in contrast.weights)
            if len(found[self.measures[0]]) == count:
                conditions.append(
                    [
                        contrast.label,
                        *(_cell(found[name], MEASURES[name].digits + 1) for name in found),
                    ]
                )
                data.append({"contrast": contrast.label, **found})
        return Section(
            name="measures",
            title="The differences in every measure",
            text=[
                "Paired by seed, with the 95% interval and the number of seeds on the side of the "
                "mean; bold where the interval excludes 0. The intervals are not corrected, and "
                f"change no verdict. {self.note}"
            ],
            columns=["", *(MEASURES[name].unit.strip() for name in self.measures)],
            rows=conditions,
            data=data,
        )


def _cell(values: Sequence[float], digits: int) -> str:
    if not all(map(math.isfinite, values)):
        return "a training diverged"
    interval = t_interval(values)
    side = sum(each * interval.middle > 0 for each in values)
    direction = "higher" if interval.middle > 0 else "lower"
    words = f"{signed(interval, digits)}, {side} of {len(values)} {direction}"
    return f"**{words}**" if interval.excludes(0) else words


def _values(results: Sequence[Result], tests: Sequence[str]) -> Section:
    """Returns the section of the values of the kinds that have all their seeds."""
    whole = {
        condition: done
        for condition, done in by_condition(results).items()
        if len(done) == condition.seeds
    }
    data: list[dict[str, Any]] = []
    for condition, done in whole.items():
        data += [_value(condition, each) for each in done]
    return Section(
        name="values",
        title="The values of each kind",
        text=[
            "Means over the seeds of the kinds whose trainings are all done, with their standard "
            "deviation (sd)."
        ],
        columns=[
            "",
            "seeds",
            "BLEU, weighted",
            *tests,
            "chrF, weighted",
            "validation loss",
            "training loss",
        ],
        rows=[_cells(condition, done, tests) for condition, done in whole.items()],
        data=data,
    )


def _cells(condition: Condition, done: Sequence[Result], tests: Sequence[str]) -> list[str]:
    found = {name: list(map(measure.value, done)) for name, measure in MEASURES.items()}
    of_tests = [spread(list(map(methodcaller("test", test), done))) for test in tests]
    losses = [spread(found[name], 3) for name in ("valid_loss", "train_loss")]
    bleu = spread(found["bleu"], 2)
    return [condition.label, str(len(done)), bleu, *of_tests, spread(found["chrf"]), *losses]


def _value(condition: Condition, result: Result) -> dict[str, Any]:
    """Returns the values of a training, in JSON types."""
    names = ("bleu", "chrf", "valid_loss", "train_loss")
    return {
        "row": condition.name,
        "seed": result.seed,
        **{name: MEASURES[name].value(result) for name in names},
        "seconds": result.log["validations"][-1]["seconds"],
    }
