"""Writes a report: report.md, report.json, and a PNG per picture."""

import itertools
import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from .section import Claim, Section

_DOTS_PER_INCH = 120


def write_report(
    folder: Path,
    title: str,
    about: Sequence[str],
    facts: dict[str, Any],
    sections: Sequence[Section],
) -> None:
    """Writes a report, which replaces the folder when it is complete.

    It begins with the claims of all sections.

    Args:
        folder: Where its files go. Earlier files there are removed.
        title: Title of the report.
        about: Paragraphs between the claims and the first section, in Markdown.
        facts: Values of the JSON file besides the sections.
        sections: The sections, in order.
    """
    temporary = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for section in sections:
        if section.plot:
            write_picture(section, temporary)
    claims = list(itertools.chain(*(section.claims for section in sections)))
    text = "\n\n".join([f"# {title}", *_claims(claims), *about, *map(_markdown, sections)]) + "\n"
    found = {
        **facts,
        "claims": [claim._asdict() for claim in claims],
        "sections": {
            each.name: {
                "title": each.title,
                "columns": each.columns,
                "rows": each.rows,
                "data": each.data,
            }
            for each in sections
        },
    }
    (temporary / "report.md").write_text(text, encoding="utf-8")
    (temporary / "report.json").write_text(
        json.dumps(_finite(found), indent=2, allow_nan=False) + "\n", encoding="utf-8"
    )
    shutil.rmtree(folder, ignore_errors=True)
    temporary.rename(folder)


def summary_of(folder: Path) -> str:
    """Returns the claims of a report with their verdicts, a line each, and where the report is."""
    claims = json.loads((folder / "report.json").read_text("utf-8"))["claims"]
    lines = [f"{each['claim']}: {each['ours']}: {each['verdict']}" for each in claims]
    return "\n".join([*lines, f"wrote {folder / 'report.md'}"])


def write_picture(section: Section, folder: Path) -> None:
    """Writes the picture of a section as NAME.png."""
    figure = Figure()
    section.plot(figure)
    figure.suptitle(section.title, fontsize=12)
    figure.savefig(folder / f"{section.name}.png", dpi=_DOTS_PER_INCH)


def _finite(value: Any) -> Any:
    """Replaces NaN and infinity, which JSON lacks, by null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _claims(claims: Sequence[Claim]) -> list[str]:
    """Returns the paragraph and the table that begin a report with claims."""
    if not claims:
        return []
    about = (
        "The claims, and what this report shows of them. In this table, brackets hold 95% "
        "intervals."
    )
    return [about, markdown_table(Claim._fields, claims, ":---")]


def _markdown(section: Section) -> str:
    table = markdown_table(section.columns, section.rows, "---:")
    picture = [f"![{section.title}]({section.name}.png)"] if section.plot else []
    return "\n\n".join([f"## {section.title}", *section.text, table, *picture])


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]], alignment: str) -> str:
    """Returns a Markdown table; `alignment` is that of all columns but the first."""
    lines = [columns, ["---", *[alignment] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
