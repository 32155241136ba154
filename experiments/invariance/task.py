"""Measures and reports invariances: the task `invariance`. It trains nothing and needs no data."""

from pathlib import Path

from nmt.errors import UserError

from ..reporting.writer import told, write_report
from .measure import measure_invariance
from .section import section

REPORT = Path(__file__).parents[2] / "runs" / "report"


def reproduce(data: str, so_far: bool) -> None:
    """Writes the report. `so_far` has no effect, because nothing is trained.

    Raises:
        UserError: Data is given.
    """
    if data:
        raise UserError(f"DATA={data}: the task invariance takes no data; leave DATA out")
    write_report(REPORT, "Invariances of normalization", [], {}, [section(measure_invariance())])
    print(told(REPORT))
