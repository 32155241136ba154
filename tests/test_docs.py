"""The pages: all in the navigation, every link resolves, every file and test they name exists, and the site builds."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("benchmarks", "docs", "examples", "experiments", "nmt", "patches", "rmsnorm_tf", "tests")
NAMED = re.compile(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/[\w./-]*\.(?:py|md|json|patch|ipynb|png)\b")
# Written by programs of the project.
GENERATED = ("experiments/logs/", "nmt/patched_normalization.py")
# Files of Nematus that have a home in its own `nematus/` folder or none here.
OF_NEMATUS = {"nmt.py", "train.py", "translate.py", "score.py", "rescore.py", "server.py", "rmsnorm.py"}


def load_site():
    spec = importlib.util.spec_from_file_location("site_hook", ROOT / "docs" / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = load_site()


def texts(*endings):
    """Yields the files of the project with these endings, tests and their data left out."""
    for path in [*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]:
        if path.suffix in endings and "tests" not in path.relative_to(ROOT).parts:
            yield path


def test_every_page_is_in_the_navigation():
    pages = {path for path in texts(".md") if path.parts[len(ROOT.parts)] in {"docs", path.name}}  # docs/ and the root
    assert len(pages) > 10
    assert pages <= set(SITE.pages())
    assert not [path for path in SITE.pages() if not path.is_file()]


@pytest.mark.parametrize("page", SITE.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page):
    assert not [link for link in SITE.links(page) if not link.is_file()]


def test_the_links_of_a_page_are_found(tmp_path):
    page = tmp_path / "page.md"
    links = '[a\nb](x.md#part) ![p](y.png) [c](https://host/z) [d](#here) <img src="z.png">'
    page.write_text(f"{links}\n```\n[no](link.md)\n```\n")
    assert SITE.links(page) == [tmp_path / "x.md", tmp_path / "y.png", tmp_path / "z.png"]


def test_every_file_that_is_named_exists():
    """Old names of files that moved are found here."""
    named = [(path, name) for path in texts(".md", ".py", ".cfg") for name in NAMED.findall(path.read_text("utf-8"))]
    assert len(named) > 50
    missing = [(path, name) for path, name in named if not (ROOT / name).exists() and not name.startswith(GENERATED)]
    assert not [(str(path.relative_to(ROOT)), name) for path, name in missing]


def test_every_program_that_a_page_names_exists():
    """Names of Python files without a folder, such as `train.py`."""
    ours = {path.name for path in texts(".py")} | OF_NEMATUS
    named = [(path, name) for path in SITE.pages() for name in re.findall(r"`(\w+\.py)`", path.read_text("utf-8"))]
    assert not [(str(path.relative_to(ROOT)), name) for path, name in named if name not in ours]


def test_the_faults_and_their_tests():
    """Both pages have the same rows, and every test that the maintainers' page names exists and is slow if starred."""
    faults = (ROOT / "docs" / "maintainers" / "faults.md").read_text("utf-8")
    answers = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    rows = re.compile(r"^(?:## .*|\| ([^|]*) \|)", re.MULTILINE)
    assert [row[0].partition("|")[0] for row in rows.finditer(faults) if row[1]] == [
        row[0].partition("|")[0] for row in rows.finditer(answers) if row[1]
    ]
    assert rows.findall(faults) == rows.findall(answers)
    tests = {}
    for path in (ROOT / "tests" / "nmt").rglob("test_*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                tests[node.name] = any("slow" in ast.unparse(decorator) for decorator in node.decorator_list)
    named = re.findall(r"`(test_\w+)`(\*?)", faults)
    assert len(named) > 40
    assert not [name for name, star in named if tests.get(name) != (star == "*")]


def test_the_site_builds(tmp_path):
    """Strictly: MkDocs fails at a broken link or anchor."""
    pytest.importorskip("mkdocstrings", reason="needs the documentation tools: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    api = (tmp_path / "site" / "docs" / "api" / "index.html").read_text("utf-8")
    assert 'id="rmsnorm_tf.RMSNormalization"' in api
