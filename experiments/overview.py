"""`python -m experiments.overview` writes experiments/results/README.md: the claims of all kept reports on one page."""

import json
from pathlib import Path

from nmt.storage.files import atomic_write

from .reporting.section import Claim
from .reporting.writer import CLAIM_COLUMNS, markdown_table

RESULTS = Path(__file__).parent / "results"

_ABOUT = (
    "Every claim that the kept reports judge. Brackets hold 95% intervals. Each folder has the report, its pictures "
    "and its logs; [experiments/README.md](../README.md) says how to make them again. "
    "`python -m experiments.overview` writes this page."
)


def overview(results: Path) -> str:
    """Returns the page in Markdown: the claims of each report, and its remarks, if it has a `remarks.md`.

    Args:
        results: The folder with a folder for each report.
    """
    parts = ["# The claims of the papers, and what we found", _ABOUT]
    for path in sorted(results.glob("*/report.json")):
        title = (path.parent / "report.md").read_text("utf-8").partition("\n")[0].removeprefix("# ")
        report = json.loads(path.read_text("utf-8"))
        claims = [Claim(**claim) for claim in report["claims"]]
        parts += [f"## [{title}]({path.parent.name}/report.md)", *report.get("about", [])]
        parts.append(markdown_table(CLAIM_COLUMNS, claims, ":---"))
        if (remarks := path.with_name("remarks.md")).exists():
            parts.append(remarks.read_text("utf-8").strip())
    return "\n\n".join(parts) + "\n"


def write_overview() -> None:
    """Writes the page."""
    with atomic_write(RESULTS / "README.md") as file:
        file.write(overview(RESULTS))
    print(f"wrote {RESULTS / 'README.md'}")


if __name__ == "__main__":
    write_overview()
