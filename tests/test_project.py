"""The files that platforms and package tools read."""

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_deployment import documents

ROOT = Path(__file__).parents[1]
SCHEMAS = {
    "CITATION.cff": "citation-file-format",
    ".github/workflows/test.yml": "github-workflows",
    ".github/ISSUE_TEMPLATE/config.yml": "github-issue-config",
    ".github/ISSUE_TEMPLATE/fault.yml": "github-issue-forms",
    ".github/ISSUE_TEMPLATE/wish.yml": "github-issue-forms",
}


def metadata():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config["metadata"]


@pytest.mark.parametrize("path", SCHEMAS)
def test_a_file_follows_its_schema(path):
    check = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        f"vendor.{SCHEMAS[path]}",
        str(ROOT / path),
    ]
    run = subprocess.run(check, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_the_workflow_tests_the_versions_that_the_package_names():
    (workflow,) = documents(ROOT / ".github/workflows/test.yml")
    classifiers = re.findall(r"Python :: (3\.\d+)", metadata()["classifiers"])
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == classifiers


def test_the_citation_has_the_version_and_the_address_of_the_package():
    (citation,) = documents(ROOT / "CITATION.cff")
    version = re.search(
        r'__version__ = "(.+)"', (ROOT / "rmsnorm_tf/__init__.py").read_text("utf-8")
    )[1]
    assert (citation["version"], citation["repository-code"]) == (version, metadata()["url"])


def test_the_long_description_has_no_relative_links():
    name = metadata()["long_description"].removeprefix("file:").strip()
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / name).read_text("utf-8"))
    assert targets and all(target.startswith("https://") for target in targets)
    own = [
        target.removeprefix(f"{metadata()['url']}/blob/main/")
        for target in targets
        if "arxiv" not in target
    ]
    assert all((ROOT / path).is_file() for path in own)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md", "experiments/README.md"])
def test_make_clean_removes_no_model_of_a_page(page):
    removed = re.search(r"^clean:\n\trm -rf (.+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert removed[1].split() == [".venv", ".venv-*", ".cache", ".*_cache", "build"]
    named = re.findall(r"\bbuild/\w+", (ROOT / page).read_text("utf-8"))
    assert set(named) <= {"build/demo", "build/site"}
