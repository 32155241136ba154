"""The pages: every link resolves, and every file and test they name exists."""

import argparse
import configparser
import importlib.util
import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.source_folders import source_folders

ROOT = Path(__file__).parents[1]
FOLDERS = [*(folder.name for folder in source_folders(ROOT)), "tests"]
NAMED = re.compile(
    rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/[\w./-]*\.(?:py|md|json|patch|ipynb|png)\b"
)
# Written by programs of the project.
GENERATED = ("experiments/logs/",)
# Files of Nematus that have a home in its own `nematus/` folder or none here.
_PROGRAMS = (
    "build_dictionary",
    "nmt",
    "train",
    "translate",
    "score",
    "rescore",
    "server",
    "rmsnorm",
)
OF_NEMATUS = {f"{name}.py" for name in _PROGRAMS}


def load(name):
    """Imports a program of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = load("site")


def texts(*endings):
    """Yields the files of the project with these endings, tests and their data left out."""
    for path in [
        *ROOT.glob("*"),
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")),
    ]:
        if path.suffix in endings and "tests" not in path.relative_to(ROOT).parts:
            yield path


def test_every_page_is_in_the_navigation():
    pages = {
        path for path in texts(".md") if path.parts[len(ROOT.parts)] in {"docs", path.name}
    }  # docs/ and the root
    assert len(pages) > 10
    assert pages <= set(SITE.pages())
    assert not [path for path in SITE.pages() if not path.is_file()]


def test_every_link_leads_to_a_file():
    pages = {*texts(".md"), *(page for page in SITE.files_of_the_site() if page.suffix == ".md")}
    linked = [(page, link) for page in pages for link in SITE.links(page)]
    assert len(linked) > 100
    assert not [
        (str(page.relative_to(ROOT)), str(link)) for page, link in linked if not link.is_file()
    ]


def test_the_links_of_a_page_are_found(tmp_path):
    page = tmp_path / "page.md"
    links = '[a\nb](x.md#part) ![p](y.png) [c](https://host/z) [d](#here) <img src="z.png">'
    page.write_text(f"{links}\n```\n[no](link.md)\n```\n")
    assert SITE.links(page) == [tmp_path / "x.md", tmp_path / "y.png", tmp_path / "z.png"]


def test_every_file_that_is_named_exists():
    """Old names of files that moved are found here."""
    named = [
        (path, name)
        for path in texts(".md", ".py", ".cfg")
        for name in NAMED.findall(path.read_text("utf-8"))
    ]
    assert len(named) > 50
    missing = [
        (path, name)
        for path, name in named
        if not (ROOT / name).exists() and not name.startswith(GENERATED)
    ]
    assert not [(str(path.relative_to(ROOT)), name) for path, name in missing]


def test_every_program_that_a_page_names_exists():
    """Names of Python files without a folder, such as `train.py`."""
    ours = {path.name for path in texts(".py")} | OF_NEMATUS
    named = [
        (path, name)
        for path in SITE.pages()
        for name in re.findall(r"`(\w+\.py)`", path.read_text("utf-8"))
    ]
    assert not [(str(path.relative_to(ROOT)), name) for path, name in named if name not in ours]


def test_every_example_in_a_docstring_is_run():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    run = [
        ROOT / path
        for path in config["tool:pytest"]["testpaths"].split("\n")
        if path and path[0] != "#"
    ]
    files = [
        path
        for path in texts(".py")
        if re.search(r"^ *>>> ", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert len(files) > 10
    assert not [path for path in files if not {path, *path.parents} & set(run)]


def shell_commands():
    """Yields (page, words) of every command in the pages for users, in fences or indented."""
    for page in SITE.pages():
        text = page.read_text("utf-8").replace("\\\n", " ")
        fenced = "".join(re.findall(r"```(?:sh|bash)\n(.*?)```", text, re.DOTALL)).splitlines()
        for line in [*fenced, *re.findall(r"^    (python -m .*)", text, re.MULTILINE)]:
            if "[--" not in line:
                yield page.name, shlex.split(re.split(r" [|<>] ", line)[0], comments=True)


def test_every_command_of_a_page_is_one_that_nmt_takes(monkeypatch):
    from nmt.bulk.__main__ import parse
    from nmt.commands.parser import parse_arguments

    programs = {"nmt": parse_arguments, "nmt.bulk": lambda: parse(sys.argv[1:])}
    monkeypatch.setattr("nmt.commands.parser._EXTRAS", {})  # whatever is installed
    commands = [
        (page, words)
        for page, words in shell_commands()
        if words[:2] == ["python", "-m"] and words[2] in programs
    ]
    assert {words[2] for _, words in commands} == set(programs)
    assert len(commands) > 20
    for page, words in commands:
        monkeypatch.setattr(sys, "argv", words[2:])
        try:
            programs[words[2]]()
        except SystemExit:
            pytest.fail(f"{page}: {shlex.join(words)}")


def test_every_option_that_other_toolkits_are_compared_with_exists():
    from nmt.commands.options import COMMANDS

    known = set()
    for command in COMMANDS:
        made = argparse.ArgumentParser()
        command(made)
        known |= set(made._option_string_actions)
    page = (ROOT / "docs" / "coming-from.md").read_text("utf-8")
    ours = [
        re.match(r"\| ([^|]*) \|", line)[1] for line in page.splitlines() if line.startswith("| ")
    ]
    named = re.findall(r"--(\w+)", " ".join(ours))
    assert len(named) > 25
    assert {f"--{name}" for name in named} <= known


def test_every_target_of_make_that_a_page_names_exists():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for page in SITE.pages():
        named = re.findall(r"(?:`|^|/python )make ([\w-]+)", page.read_text("utf-8"), re.MULTILINE)
        assert not set(named) - targets, page


def is_in_group(path, words):
    """Returns whether pytest runs a file when it gets these words."""
    named = {ROOT / word for word in words if not word.startswith("--")}
    ignored = {ROOT / word.removeprefix("--ignore=") for word in words if word.startswith("--")}
    places = {path, *path.parents}
    return bool(places & named) and not places & ignored


def test_every_slow_test_is_in_one_group():
    """Each group of `make test-slow` is on the maintainers' page."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    groups = {
        name: words.split()
        for name, words in re.findall(r"^(\w+)_TESTS := (.*)$", makefile, re.MULTILINE)
    }
    page = (ROOT / "docs" / "maintainers" / "slow-tests.md").read_text("utf-8")
    assert list(groups) == re.findall(r"^GROUPS := (.*)$", makefile, re.MULTILINE)[0].split()
    assert list(groups) == re.findall(
        r"^\| (\w+) \|.*\| \d{4}-\d\d-\d\d \|$", page, re.MULTILINE
    )  # with a date
    for path in (ROOT / "tests").rglob("test_*.py"):
        if re.search(r"mark\.slow|tests\.parameters", path.read_text("utf-8")):
            inside = [name for name, words in groups.items() if is_in_group(path, words)]
            assert len(inside) == 1, path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "exact", "bleu"), [("docs/tutorial.md", 4, 50), ("README.md", 0, None)]
)
def test_a_page_gives_the_outputs_it_shows(tmp_path, page, exact, bleu):
    """Blocks before the training exactly, later ones as many lines, with a useful model."""
    tutorial = load("run_tutorial")
    text = (ROOT / page).read_text("utf-8")
    shown = [block[2] for block in tutorial.BLOCK.finditer(text) if block[2]]
    found = [
        block[2] for block in tutorial.BLOCK.finditer(tutorial.run(text, tmp_path)) if block[2]
    ]
    assert shown
    ids = re.compile(r"\b[0-9a-f]{12}\b")
    assert [ids.sub("ID", output) for output in found[:exact]] == [
        ids.sub("ID", output) for output in shown[:exact]
    ]
    # Rounding decides whether an early validation cuts a translation.
    cut = re.compile(r"^  \d+ of \d+ translations reached .*\n", re.MULTILINE)
    assert [cut.sub("", output).count("\n") for output in found] == [
        cut.sub("", output).count("\n") for output in shown
    ]
    if bleu:
        (score,) = re.findall(r"^BLEU (\S+)", "\n".join(found), re.MULTILINE)
        assert float(score) > bleu


@pytest.mark.slow
def test_the_notebook_runs():
    cells = load("run_notebook").run().cells
    assert sum(bool(cell.get("outputs")) for cell in cells) >= 4
