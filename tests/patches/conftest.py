"""A copy of what the patches are for, and ways to run commands on it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patches.trees import VERSIONS, Tree, copy_patches

ROOT = Path(__file__).resolve().parents[2]


class Project:
    """A folder with the project's nmt/, pristine, and its patches/, in no git repository."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.series = root / "patches" / "nmt"
        self.file = root / "nmt" / "normalization.py"
        ignored = shutil.ignore_patterns("__pycache__")
        for name in ("nmt", "patches"):
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
        # The project itself may have patches applied, in place.
        self.apply("revert", check=True)

    def run(self, *command: str, check: bool = False) -> subprocess.CompletedProcess:
        """Runs a command here; a repository further up is out of sight, and so are settings."""
        hidden = {"GIT_CEILING_DIRECTORIES": str(self.root.parent), "HOME": str(self.root.parent)}
        return subprocess.run(
            command,
            cwd=self.root,
            env={**os.environ, **hidden, "GIT_CONFIG_NOSYSTEM": "1"},
            check=check,
            capture_output=True,
            text=True,
        )

    def apply(self, command: str, *options: str, **kwargs) -> subprocess.CompletedProcess:
        """Runs apply.py, without any installed package, on this folder."""
        return self.run(sys.executable, "-IS", "patches/apply.py", command, ".", *options, **kwargs)

    def git(self, *arguments: str) -> str:
        """Runs git as somebody; it must succeed."""
        someone = ["-c", "user.name=Someone", "-c", "user.email=someone@example.invalid"]
        return self.run("git", *someone, *arguments, check=True).stdout

    def commit_all(self) -> None:
        """Makes the folder a repository of its own."""
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "all")

    def snapshot(self) -> dict[str, tuple[int, bytes]]:
        """Returns the mode and the content of every file of nmt/, by name."""
        files = sorted((self.root / "nmt").iterdir()) if (self.root / "nmt").is_dir() else []
        return {f.name: (f.stat().st_mode, f.read_bytes()) for f in files if f.is_file()}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def git() -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed, and it says what is right here")


@pytest.fixture(scope="session")
def patches(tmp_path_factory):
    return copy_patches(tmp_path_factory.mktemp("project"))


@pytest.fixture(params=VERSIONS)
def tree(request, patches, tmp_path):
    return Tree(patches, tmp_path / "tree", request.param)


@pytest.fixture
def v03(patches, tmp_path):
    return Tree(patches, tmp_path / "tree", "v0.3")
