"""apply.py recognises the version of Nematus, and applies and reverts exactly."""

import os
import re
import subprocess
from functools import partial

import pytest

from tests.patches.trees import MODULE, PATCHES


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_recognises_applies_and_reverts_exactly(tree, ending, request):
    for path in tree.paths:
        file = tree.root / path
        file.write_bytes(file.read_bytes().replace(b"\n", ending))
        file.chmod(0o755 if path.endswith("nmt.py") else 0o640)
    before = tree.snapshot()
    request.addfinalizer(partial(os.umask, os.umask(0o027)))  # of the added file
    status = tree.apply("status")
    assert status.stdout.startswith(f"{tree.series}: pristine\n  Nematus {tree.version}, commit ")
    assert status.stdout.count("  not yet  ") == 2
    assert ("already has rmsnorm" in status.stdout) == (tree.version == "master")
    applied = tree.apply("apply")
    assert (applied.returncode, applied.stderr) == (0, "")
    assert applied.stdout.endswith(f"\n{tree.series}: applied 2 of 2\n")
    for name, (mode, data) in tree.snapshot().items():
        path = f"nematus/{name}"
        if path in [*tree.paths, MODULE]:
            assert data.count(ending) == data.count(b"\n") > 0
        assert mode == before.get(name, (0o100640,))[0]
    assert tree.snapshot()["rmsnorm.py"][1].replace(b"\r\n", b"\n") == (
        (PATCHES / "nematus-common/rmsnorm.py").read_bytes()
    )
    assert tree.apply("status").stdout.count("  applied  ") == 2
    assert "nothing to do" in tree.apply("apply").stdout
    assert tree.apply("revert").stdout.endswith(f"\n{tree.series}: pristine\n")
    assert tree.snapshot() == before


@pytest.mark.usefixtures("git")
@pytest.mark.parametrize("around", ["its own repository", "another repository", "no repository"])
def test_equals_git(tree, around):
    if around == "its own repository":
        tree.git("init", "--quiet")
    if around == "another repository":
        subprocess.run(["git", "init", "--quiet", str(tree.root.parent)], check=True)
    before = tree.snapshot()
    assert tree.apply("apply").returncode == 0
    ours = tree.snapshot()
    tree.apply("revert")
    names = re.findall(r"^[^#].*$", (tree.patches / tree.series / "series").read_text(), re.M)
    files = [str(tree.patches / tree.series / name) for name in names]
    tree.git("apply", "--unidiff-zero", *files)
    assert tree.snapshot() == ours != before
    tree.git("apply", "--unidiff-zero", "--reverse", *files)
    assert tree.snapshot() == before


@pytest.mark.parametrize("command", ["apply", "revert"])
@pytest.mark.parametrize("then", ["apply", "revert"])
def test_an_interruption_at_any_file_can_be_finished_or_reverted(v03, command, then):
    before = v03.snapshot()
    v03.apply("apply")
    after = v03.snapshot()
    for n in range(len(v03.paths) + 1):
        v03.apply("revert" if command == "apply" else "apply")
        assert v03.snapshot() == (before if command == "apply" else after)
        assert v03.interrupt(command, n) == 9
        # At no moment does a file import the module while it is missing.
        if (v03.root / "nematus/layers.py").read_bytes() != before["layers.py"][1]:
            assert (v03.root / MODULE).exists()
        assert v03.apply(then).returncode == 0
        assert v03.snapshot() == (after if then == "apply" else before)
