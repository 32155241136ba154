from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")

from experiments.overview import RESULTS, overview
from experiments.reporting.section import Claim
from experiments.reporting.writer import write_report
from tests.experiments.reporting.test_writer import section


def test_the_page_has_the_claims_of_every_report(tmp_path):
    for name, verdict in (("one", "borne out"), ("two", "not shown")):
        judged = replace(section(name), claims=[Claim(f"{name} is better", "by 2", "by 1", verdict)])
        write_report(tmp_path / name, f"Report {name}", [], {}, [judged])
    (tmp_path / "one" / "remarks.md").write_text("Why that is.\n")
    page = overview(tmp_path)
    first, second = page.index("## [Report one](one/report.md)"), page.index("## [Report two](two/report.md)")
    assert first < page.index("| one is better | by 2 | by 1 | borne out |\n\nWhy that is.\n") < second
    assert second < page.index("| two is better | by 2 | by 1 | not shown |")


def test_the_kept_page_is_that_of_the_kept_reports():
    assert (RESULTS / "README.md").read_text("utf-8") == overview(RESULTS)
