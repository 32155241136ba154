import json
from dataclasses import replace

import pytest

from experiments.reporting.section import Claim, Section
from experiments.reporting.writer import write_report


def section(name):
    return Section(
        name=name,
        title=f"The {name}",
        text=["A *first* paragraph with a < b.", "A second one."],
        columns=["", "x"],
        rows=[["row", "1 to 2"]],
        data={"x": [1.5]},
        plot=lambda figure: figure.subplots().plot([1, 2]),
    )


@pytest.fixture
def report(tmp_path):
    write_report(
        tmp_path / "report",
        "Title",
        ["About."],
        {"corpus": "tiny"},
        [section("one"), section("two")],
    )
    return tmp_path / "report"


def test_all_files_are_written(report):
    assert sorted(path.name for path in report.iterdir()) == [
        "one.png",
        "report.json",
        "report.md",
        "two.png",
    ]
    assert (report / "one.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_replaces_the_previous_one(report):
    (report / "of_the_last.png").touch()
    write_report(report, "Title", [], {}, [section("one")])
    assert sorted(path.stem for path in report.glob("*.png")) == ["one"]


def test_markdown_has_table_and_picture(report):
    text = (report / "report.md").read_text()
    assert text.startswith("# Title\n\nAbout.\n\n## The one\n")
    assert "|  | x |\n| --- | ---: |\n| row | 1 to 2 |\n\n![The one](one.png)\n" in text


def test_json_has_facts_and_figures_and_null_for_what_it_lacks(tmp_path):
    data = {"x": [1.5, float("nan")], "y": float("inf"), "z": ("text", None)}
    facts = {"corpus": "tiny"}
    write_report(tmp_path / "report", "Title", [], facts, [replace(section("one"), data=data)])
    found = json.loads(
        (tmp_path / "report" / "report.json").read_text(), parse_constant=pytest.fail
    )
    assert found["corpus"] == "tiny"
    assert found["sections"]["one"]["data"] == {"x": [1.5, None], "y": None, "z": ["text", None]}


def test_a_report_begins_with_the_claims_of_its_sections(tmp_path):
    claims = [
        Claim("It is *better*", "by 2", "by 1", "borne out"),
        Claim("It is faster", "", "", "not shown"),
    ]
    write_report(
        tmp_path / "report", "Title", ["About."], {}, [replace(section("one"), claims=claims)]
    )
    text = (tmp_path / "report" / "report.md").read_text()
    assert text.startswith(
        "# Title\n\nThe claims, and what this report shows of them. "
        "In this table, brackets hold 95% intervals.\n\n"
        "| claim | paper | ours | verdict |\n| --- | :--- | :--- | :--- |\n"
        "| It is *better* | by 2 | by 1 | borne out |\n| It is faster |  |  | not shown |\n\n"
        "About.\n\n## The one\n"
    )
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [claim["verdict"] for claim in found["claims"]] == ["borne out", "not shown"]


def test_a_section_without_a_plot_has_no_picture(tmp_path):
    write_report(tmp_path / "report", "Title", [], {}, [replace(section("one"), plot=None)])
    assert not list((tmp_path / "report").glob("*.png"))
    assert "![" not in (tmp_path / "report" / "report.md").read_text()
