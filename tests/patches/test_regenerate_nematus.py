"""regenerate_nematus.py, on a repository that stands for a clone of Nematus."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patches.trees import PATCHES, VERSIONS, git, pristine

pytestmark = pytest.mark.usefixtures("git")


def texts(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.glob("nematus-*/*.patch")
    }


class Copy:
    """A copy of patches/ and a repository with a commit for each version of Nematus."""

    def __init__(self, root: Path) -> None:
        self.patches = root / "patches"
        self.clone = root / "clone"

    def write(self) -> None:
        shutil.copytree(PATCHES, self.patches, ignore=shutil.ignore_patterns("__pycache__"))
        (self.clone / "nematus").mkdir(parents=True)
        self.git("init", "--quiet")
        for version in VERSIONS:
            for path in self.paths(version):
                (self.clone / path).write_bytes(pristine(version, path))
            self.git("add", ".")
            self.git("commit", "--quiet", "--message", version)
            series = self.patches / f"nematus-{version}" / "series"
            commit = self.git("rev-parse", "HEAD").strip()
            series.write_text(re.sub("commit [0-9a-f]{40}", f"commit {commit}", series.read_text()))

    def paths(self, version: str) -> list[str]:
        (patch,) = (PATCHES / f"nematus-{version}").glob("*.patch")
        return re.findall(r"^\+\+\+ b/(.*)$", patch.read_text(), re.M)

    def git(self, *arguments: str) -> str:
        return git(self.clone, *arguments)

    def regenerate(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [sys.executable, str(self.patches / "regenerate_nematus.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    root = tmp_path_factory.mktemp("clone")
    Copy(root).write()
    return root


@pytest.fixture
def copy(written, tmp_path):
    return Copy(shutil.copytree(written, tmp_path / "copy"))


def test_without_a_clone_only_the_module_is_regenerated(copy):
    before = texts(copy.patches)
    assert copy.regenerate().returncode == 0
    assert texts(copy.patches) == before
    module = copy.patches / "nematus-common/rmsnorm.py"
    module.write_bytes(module.read_bytes() + b"# One more line.\n")
    said = copy.regenerate().stdout
    assert said == "patches/nematus-common/add-module.patch: regenerated\n"
    after = texts(copy.patches)
    assert {name for name in after if after[name] != before[name]} == {
        "nematus-common/add-module.patch"
    }
    assert after["nematus-common/add-module.patch"].endswith(b"\n+# One more line.\n")


@pytest.mark.parametrize("version", VERSIONS)
def test_with_a_clone_the_patches_fit_its_files(copy, version):
    (patch,) = (copy.patches / f"nematus-{version}").glob("*.patch")
    text = patch.read_bytes()
    (place, *_) = re.findall(rb"^@@ .*\n", text, re.M)
    patch.write_bytes(text.replace(place, place + b"+# A line that is new.\n", 1))
    result = copy.regenerate(str(copy.clone))
    assert (result.returncode, result.stderr) == (0, "")
    commit = re.search("commit ([0-9a-f]{40})", (patch.parent / "series").read_text())[1]
    tree = copy.patches.parent / "tree"
    copy.git("worktree", "add", "--quiet", "--detach", str(tree), commit)
    before = {path: (tree / path).read_text() for path in copy.paths(version)}
    subprocess.run(["git", "apply", "--check", "--unidiff-zero", str(patch)], cwd=tree, check=True)
    apply = [sys.executable, str(copy.patches / "apply.py"), "apply", str(tree)]
    assert subprocess.run(apply, capture_output=True, text=True).stdout.endswith("applied 2 of 2\n")
    for path, text in before.items():
        added = [
            line for line in (tree / path).read_text().splitlines() if line not in text.splitlines()
        ]
        assert ("# A line that is new." in added) == (path == copy.paths(version)[0])


def test_a_folder_that_is_no_clone_is_refused_in_one_line(copy, tmp_path):
    before = texts(copy.patches)
    for path in ("absent", str(tmp_path)):
        result = copy.regenerate(path)
        assert (result.returncode, result.stderr.count("\n")) == (2, 1)
        assert result.stderr.startswith("regenerate_nematus.py: ")
        assert "give a clone of Nematus" in result.stderr
    assert texts(copy.patches) == before
