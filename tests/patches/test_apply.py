"""apply.py: exact for every prefix and equal to git; unknown states are refused."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patches.trees import blob_id

ROOT = Path(__file__).resolve().parents[2]
NAMES = (ROOT / "patches/nmt/series").read_text().split()
PREFIXES = range(1, len(NAMES) + 1)
LAST = NAMES[-1]


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("k", PREFIXES)
def test_every_prefix_applies_and_reverts_exactly(project, k, ending):
    project.file.write_bytes(project.file.read_bytes().replace(b"\n", ending))
    project.file.chmod(0o754)
    before = project.snapshot()
    applied = project.apply("apply", "--through", NAMES[k - 1])
    assert applied.returncode == 0, applied.stderr
    first, *lines, last = applied.stdout.splitlines()
    assert (first, last) == ("nmt: pristine", f"nmt: applied {k} of {len(NAMES)}")
    assert [line.split()[1].rstrip(":") for line in lines] == NAMES[:k]
    data = project.file.read_bytes()
    assert data.count(ending) == data.count(b"\n") > 0
    assert lines[-1].endswith(blob_id(data.replace(b"\r\n", b"\n"))[:12])
    status = project.apply("status").stdout
    assert status.count("  applied  ") == k
    assert status.count("  not yet  ") == len(NAMES) - k
    assert project.apply("revert").returncode == 0
    assert project.snapshot() == before


@pytest.mark.usefixtures("git")
@pytest.mark.parametrize("k", PREFIXES)
@pytest.mark.parametrize("way", ["apply", "am"])
def test_equals_git_also_inside_another_repository(project, way, k):
    patches = [f"patches/nmt/{name}" for name in NAMES[:k]]
    project.git("init", "--quiet", str(project.root.parent))
    pristine = project.file.read_bytes()
    assert project.apply("apply", "--through", NAMES[k - 1]).returncode == 0
    ours = project.file.read_bytes()
    project.file.write_bytes(pristine)
    if way == "am":
        project.commit_all()
    project.git(way, *patches)
    assert project.file.read_bytes() == ours != pristine


def test_through_limits_apply_and_revert(project):
    count = len(NAMES)
    for command, through, state in [
        ("apply", NAMES[0].removesuffix(".patch"), f"applied 1 of {count}"),
        ("apply", NAMES[1], f"applied 2 of {count}"),
        ("apply", NAMES[0], "nothing to do"),
        ("apply", None, f"applied {count} of {count}"),
        ("revert", LAST, f"applied {count - 1} of {count}"),
        ("revert", LAST.removesuffix(".patch"), "nothing to do"),
        ("revert", NAMES[0], "pristine"),
        ("revert", None, "nothing to do"),
    ]:
        before = project.file.stat()
        result = project.apply(command, *(["--through", through] if through else []))
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout.splitlines()[-1].endswith(state), (command, through)
        is_same = project.file.stat().st_mtime_ns == before.st_mtime_ns
        assert is_same == (state == "nothing to do")


def test_check_says_what_apply_does_and_writes_nothing(project):
    before = project.snapshot()
    said = project.apply("check", "--through", NAMES[1]).stdout.splitlines()
    assert project.snapshot() == before
    done = project.apply("apply", "--through", NAMES[1]).stdout.splitlines()
    assert [line.replace("would apply", "applied") for line in said] == done[:-1]


def test_a_link_stays_a_link(project):
    kept = project.root / "kept.py"
    project.file.rename(kept)
    project.file.symlink_to(kept)
    project.apply("apply", check=True)
    assert project.file.is_symlink()
    assert b"RMSNormalization" in kept.read_bytes()


def edit(path, *pairs):
    def change(project):
        file = project.root / path
        data = file.read_bytes()
        for old, new in pairs:
            assert old in data
            data = data.replace(old, new, 1)
        file.write_bytes(data)

    return change


def remove(path):
    def change(project):
        file = project.root / path
        shutil.rmtree(file) if file.is_dir() else file.unlink()

    return change


FILE = "nmt/normalization.py"
PATCH = f"patches/nmt/{LAST}"
REFUSED = {
    # A change of the project, and words of the one-line message.
    "drifted": (edit(FILE, (b"1e-5", b"1e-6")), ["has drifted", "pristine", LAST, "restore"]),
    "mixed endings": (edit(FILE, (b"\n", b"\r\n")), ["mixes LF and CRLF", "convert all lines"]),
    "read-only": (lambda p: p.file.chmod(0o444), ["read-only", "chmod u+w"]),
    "file missing": (remove(FILE), ["has no file", "restore"]),
    "nmt missing": (remove("nmt"), ["contains neither nmt/", "give the folder"]),
    "patch missing": (remove(PATCH), ["damaged", LAST, "get a new copy"]),
    "series missing": (remove("patches/nmt/series"), ["damaged", "series"]),
    "series empty": (lambda p: (p.series / "series").write_text(""), ["damaged", "no patch"]),
    "patch empty": (lambda p: (p.series / LAST).write_text(""), [LAST, "damaged", "no diff"]),
    "patch cut": (
        lambda p: (p.series / LAST).write_bytes((p.series / LAST).read_bytes()[:-40]),
        [LAST, "hunks produce"],
    ),
    "patch with a changed line": (edit(PATCH, (b"+def", b"+DEF")), [LAST, "hunks produce"]),
    "patch with changed context": (
        edit(PATCH, (b"\n _BUIL", b"\n _buil")),
        [LAST, "hunks produce"],
    ),
    "patch at another place": (edit(PATCH, (b"@@ -", b"@@ -1")), [LAST, "hunks produce"]),
    "patch with a foreign line": (edit(PATCH, (b"\n+def", b"\n?def")), [LAST, "hunks produce"]),
    "patch that starts elsewhere": (
        lambda p: (p.series / LAST).write_bytes(
            re.sub(
                rb"(?m)^index (\w+)",
                lambda id_: b"index " + id_[1][::-1],
                (p.series / LAST).read_bytes(),
            )
        ),
        [LAST, "starts"],
    ),
    "patch with short ids": (
        lambda p: (p.series / LAST).write_bytes(
            (p.series / LAST).read_bytes().replace(b"..", b"..\n", 1)
        ),
        [LAST, "full ids"],
    ),
}


@pytest.mark.parametrize("command", ["apply", "check"])
@pytest.mark.parametrize("name", REFUSED)
def test_refuses_in_one_line_and_writes_nothing(project, name, command):
    spoil, words = REFUSED[name]
    spoil(project)
    before = project.snapshot()
    result = project.apply(command)
    assert result.returncode == 2
    assert result.stderr.startswith("apply.py: nothing was changed: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr
    assert project.snapshot() == before


@pytest.mark.parametrize("applied", range(len(NAMES) + 1))
def test_an_edited_file_is_refused_by_every_command(project, applied):
    known = [blob_id(project.file.read_bytes())]
    for name in NAMES:
        project.apply("apply", "--through", name, check=True)
        known.append(blob_id(project.file.read_bytes()))
    if applied < len(NAMES):
        project.apply("revert", "--through", NAMES[applied], check=True)
    assert blob_id(project.file.read_bytes()) == known[applied]
    edit(FILE, (b"\n", b"  # mine\n"))(project)
    before = project.snapshot()
    for command in ("status", "apply", "revert", "check"):
        result = project.apply(command)
        assert result.returncode == 2
        assert result.stdout.startswith(f"nmt: drifted: {FILE}\n")
        assert "pristine" not in result.stdout and "applied" not in result.stdout
        for id_ in (*known, blob_id(project.file.read_bytes())):
            assert id_[:12] in result.stderr
        assert project.snapshot() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["apply", "absent"], ["absent is not a folder", "give the folder"]),
        (["apply", "nmt"], ["nmt contains neither nmt/"]),
        (["apply", ".", "--through", "add-batchnorm"], ["add-batchnorm.patch", *NAMES]),
        (["status", ".", "--through", LAST], ["status takes no --through"]),
        (["apply", ".", "--skip", "nmt/other.py"], ["cannot skip nmt/other.py", FILE]),
        (["apply", ".", "--skip", FILE], ["cannot skip", "not all"]),
        (["undo", "."], ["undo", "revert"]),
        (["apply"], ["DIR"]),
    ],
)
def test_a_wrong_command_line_is_refused(project, arguments, words):
    before = project.snapshot()
    result = project.run(sys.executable, "patches/apply.py", *arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    assert all(word in result.stderr for word in words)
    assert project.snapshot() == before


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on the size of files")
def test_a_full_disk_changes_nothing(project):
    before = project.snapshot()
    result = project.run("sh", "-c", f"ulimit -f 0; '{sys.executable}' patches/apply.py apply .")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "run the same command again" in result.stderr
    assert project.snapshot() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_is_full_is_an_error(project, unbuffered, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    for _ in range(2):  # The second run has nothing to do.
        command = f"'{sys.executable}' patches/apply.py apply . > /dev/full"
        result = project.run("sh", "-c", command)
        assert (result.returncode, result.stderr.count("\n")) == (2, 1)
        assert result.stderr.startswith("apply.py: ")


@pytest.mark.skipif(
    os.name == "nt", reason="needs pipes that tell the writer when the reader has gone"
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_ends_without_a_message(project, unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "patches/apply.py", "status", "."],
        cwd=project.root,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=writer,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    assert result.stderr == b""


def test_runs_on_python_3_8_with_the_standard_library_alone():
    tree = ast.parse((ROOT / "patches/apply.py").read_text(), feature_version=(3, 8))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = {getattr(node, "module", None) or node.names[0].name for node in imports}
    assert names
    assert names <= set(sys.stdlib_module_names)
