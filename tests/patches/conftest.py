"""Copies of the trees that the patches are for, and methods that run commands on them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patches.trees import VERSIONS, Tree, copy_patches, git, load, run_in_process

ROOT = Path(__file__).resolve().parents[2]


class Project:
    """A folder with a pristine nmt/ and patches/, outside any git repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.series = root / "patches" / "nmt"
        self.file = root / "nmt" / "normalization.py"
        self.program = load(root / "patches" / "apply.py")

    def run(self, *command: str) -> subprocess.CompletedProcess:
        """Runs a command in the folder. Git sees no repository above it."""
        hidden = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.root.parent)}
        return subprocess.run(command, cwd=self.root, env=hidden, capture_output=True, text=True)

    def apply(
        self, command: str, *options: str, check: bool = False
    ) -> subprocess.CompletedProcess:
        """Runs apply.py on the folder."""
        result = run_in_process(self.program, command, str(self.root), *options)
        assert result.returncode == 0 or not check, result.stderr
        return result

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def commit_all(self) -> None:
        """Makes the folder a git repository."""
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "all")

    def snapshot(self) -> dict[str, tuple[int, bytes]]:
        """Returns the mode and the content of every file of nmt/, by name."""
        files = (file for file in sorted((self.root / "nmt").rglob("*")) if file.is_file())
        return {str(file): (file.stat().st_mode, file.read_bytes()) for file in files}


@pytest.fixture(scope="session")
def pristine_project(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for name in ("nmt", "patches"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    # Patches may be applied in the working tree. This also shows that the script needs no installed
    # package.
    revert = [sys.executable, "-IS", root / "patches/apply.py", "revert", root]
    result = subprocess.run(revert, capture_output=True, text=True)
    assert result.returncode == 0, f"run `make patches`: {result.stderr}"
    return root


@pytest.fixture
def project(pristine_project, tmp_path: Path) -> Project:
    return Project(shutil.copytree(pristine_project, tmp_path / "project"))


@pytest.fixture(name="git")
def has_git() -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git, with which apply.py is compared")


@pytest.fixture(scope="session")
def patches(tmp_path_factory):
    return copy_patches(tmp_path_factory.mktemp("patches"))


@pytest.fixture(params=VERSIONS)
def tree(request, patches, tmp_path):
    return Tree(patches, tmp_path / "tree", request.param)


@pytest.fixture
def v03(patches, tmp_path):
    return Tree(patches, tmp_path / "tree", "v0.3")
