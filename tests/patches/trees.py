"""Stand-ins for trees of Nematus, with text of our own, and patches whose ids fit them."""

import hashlib
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

PATCHES = Path(__file__).resolve().parents[2] / "patches"
MODULE = "nematus/rmsnorm.py"
VERSIONS = ["v0.3", "v0.4", "v0.5", "master"]


def blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def pristine(version, path):
    """Returns the content of a stand-in for a file of Nematus. Every line is unique."""
    lines = [f"{path} of {version}, line {k}" for k in range(1, 701)]
    return "".join(line + "\n" for line in lines).encode()


def git(folder, *arguments):
    """Runs git with an author in a folder, without the repository around it and without settings.

    It must succeed. Returns its output.
    """
    someone = ["-c", "user.name=Someone", "-c", "user.email=someone@example.invalid"]
    hidden = {
        "GIT_CEILING_DIRECTORIES": str(folder.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(folder.parent),
    }
    return subprocess.run(
        ["git", *someone, *arguments],
        cwd=folder,
        env={**os.environ, **hidden},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def load(file):
    """Imports a script of patches/ and leaves sys.path and sys.modules as they were."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(file.parent)
        patch.setitem(sys.modules, file.stem, module)
        spec.loader.exec_module(module)
        patch.delitem(sys.modules, "apply")
    return module


def run_in_process(program, *arguments):
    """Runs the main function of a loaded script, because a process takes much longer."""
    program.sys.argv[:] = [f"{program.__name__}.py", *arguments]
    with redirect_stdout(io.StringIO()) as stdout, redirect_stderr(io.StringIO()) as stderr:
        status = program.main()
    return subprocess.CompletedProcess(arguments, status, stdout.getvalue(), stderr.getvalue())


def copy_patches(folder):
    """Copies patches/ and changes the ids of the Nematus patches to those of the stand-in files."""
    tool = load(PATCHES / "regenerate_nematus.py")
    copy = folder / "patches"
    shutil.copytree(PATCHES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for version in VERSIONS:
        for patch in (copy / f"nematus-{version}").glob("*.patch"):
            text = tool.regenerate_insertions(
                patch.read_bytes(), lambda path, version=version: pristine(version, path)
            )
            patch.write_bytes(text)
    return copy


CUT = """
import os, pathlib, runpy, sys
left = int(sys.argv.pop())
def cut(real):
    def function(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return real(*arguments, **options)
    return function
os.replace = cut(os.replace)
real = pathlib.Path.unlink
def unlink(self, *arguments, **options):
    (cut(real) if self.name == "rmsnorm.py" else real)(self, *arguments, **options)
pathlib.Path.unlink = unlink
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Tree:
    """A stand-in for one version of Nematus, and the patches for it."""

    def __init__(self, patches: Path, root: Path, version: str) -> None:
        self.patches = patches
        self.root = root
        self.version = version
        self.series = f"nematus-{version}"
        self.program = load(patches / "apply.py")
        text = next((patches / self.series).glob("*.patch")).read_text()
        self.paths = re.findall(r"^\+\+\+ b/(.*)$", text, re.M)
        (root / "nematus").mkdir(parents=True)
        for path in self.paths:
            (root / path).write_bytes(pristine(version, path))
        for path in self.paths:
            (root / path).chmod(0o755 if path.endswith("nmt.py") else 0o644)
        (root / "nematus/score.py").write_text("an unrelated file\n")

    def apply(self, *arguments: str) -> subprocess.CompletedProcess:
        return run_in_process(self.program, arguments[0], str(self.root), *arguments[1:])

    def interrupt(self, command: str, n: int) -> int:
        """Runs apply.py in a process that is killed when it renames or removes the n-th file."""
        arguments = [str(self.patches / "apply.py"), command, str(self.root), str(n)]
        return subprocess.run(
            [sys.executable, "-ISc", CUT, *arguments], capture_output=True
        ).returncode

    def git(self, *arguments: str) -> str:
        return git(self.root, *arguments)

    def snapshot(self) -> dict[str, tuple[int, bytes]]:
        return {
            f.name: (f.stat().st_mode, f.read_bytes())
            for f in sorted((self.root / "nematus").iterdir())
        }
