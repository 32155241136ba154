"""What a job did: counts that are added up over shards."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .pieces import Outcome


@dataclass(frozen=True)
class Report:
    """Counts of a job, or of a part of it.

    Attributes:
        shards: Number of shards that were written.
        lines: Number of their lines.
        failed: Number of lines that have no translation.
        translated: Number of lines that this job translated; the others failed or are from an earlier run.
        model_seconds: Time in the model, of all workers together.
        began: Time when the first piece was begun, in seconds since 1970; None if no piece was translated.
        ended: Time when the last one was translated.
        unreadable: Shards that are missing in the output, with the reason.
    """

    shards: int = 0
    lines: int = 0
    failed: int = 0
    translated: int = 0
    model_seconds: float = 0.0
    began: float | None = None
    ended: float | None = None
    unreadable: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def of_shard(outcomes: Sequence[Outcome], started: float) -> Report:
    """Returns the report of a shard that was written by a job that started at this time."""
    new = [outcome for outcome in outcomes if outcome.work.began >= started]
    return Report(
        shards=1,
        lines=sum(outcome.piece.extent.lines for outcome in outcomes),
        failed=sum(len(outcome.failed) for outcome in outcomes),
        translated=sum(outcome.piece.extent.lines - len(outcome.failed) for outcome in new),
        model_seconds=sum(outcome.work.model_seconds for outcome in new),
        began=min((outcome.work.began for outcome in new), default=None),
        ended=max((outcome.work.ended for outcome in new), default=None),
    )


def add(reports: Iterable[Report]) -> Report:
    """Returns the sum of reports."""
    reports = list(reports)
    return Report(
        shards=sum(each.shards for each in reports),
        lines=sum(each.lines for each in reports),
        failed=sum(each.failed for each in reports),
        translated=sum(each.translated for each in reports),
        model_seconds=sum(each.model_seconds for each in reports),
        began=min((each.began for each in reports if each.began is not None), default=None),
        ended=max((each.ended for each in reports if each.ended is not None), default=None),
        unreadable={name: reason for each in reports for name, reason in each.unreadable.items()},
    )


def summary(report: Report, already: int, seconds: float, failed_folder: str) -> str:
    """Returns a sentence for the user.

    Args:
        report: What the job did.
        already: Number of shards that were in the output folder before.
        seconds: Time of the job.
        failed_folder: Where the failed lines are listed.
    """
    rate = report.translated / seconds if seconds else 0.0
    said = (
        f"{_count(report.shards, 'shard')} written with {_count(report.lines, 'line')}; "
        f"{_count(report.translated, 'line')} translated "
        f"in {seconds:,.1f} s ({rate:,.1f} lines/s)"
    )
    if report.failed:
        said += f"; {_count(report.failed, 'line')} failed, see {failed_folder}"
    if already:
        said += f"; already there: {_count(already, 'shard')}"
    return said


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
