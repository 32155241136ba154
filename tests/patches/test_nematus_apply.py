"""apply.py on a Nematus: on trees of our own making, for which the patches get the ids that fit."""

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
VERSIONS = ["v0.3", "v0.4", "v0.5", "master"]
MODULE = "nematus/rmsnorm.py"


def blob_id(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def pristine(version, path):
    """Returns a file that stands for one of Nematus: every line is another."""
    lines = [f"{path} of {version}, line {k}" for k in range(1, 701)]
    return "".join(line + "\n" for line in lines).encode()


def load(file):
    """Imports a script of patches/, and what it imports, without a trace."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(file.parent)
        patch.setitem(sys.modules, file.stem, module)
        spec.loader.exec_module(module)
        patch.delitem(sys.modules, "apply")
    return module


@pytest.fixture(scope="session")
def patches(tmp_path_factory):
    """A copy of patches/ in which those for Nematus fit the files that stand for it."""
    tool = load(PATCHES / "regenerate_nematus.py")
    copy = tmp_path_factory.mktemp("project") / "patches"
    shutil.copytree(PATCHES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for version in VERSIONS:
        for patch in (copy / f"nematus-{version}").glob("*.patch"):
            text = tool.regenerate_insertions(patch.read_bytes(), lambda path, version=version: pristine(version, path))
            # The places and the lines are those of the real patch.
            assert re.sub(rb"(?m)^index .*$", b"", text) == re.sub(rb"(?m)^index .*$", b"", patch.read_bytes())
            patch.write_bytes(text)
    return copy


class Tree:
    """A folder that stands for a Nematus of one version, and the patches for it."""

    def __init__(self, patches: Path, root: Path, version: str) -> None:
        self.patches, self.root, self.version, self.series = patches, root, version, f"nematus-{version}"
        self.program = load(patches / "apply.py")
        text = next((patches / self.series).glob("*.patch")).read_text()
        self.paths = re.findall(r"^\+\+\+ b/(.*)$", text, re.M)
        self.insertions = re.findall(r"^\+(?!\+\+ )(.*)$", text, re.M)
        (root / "nematus").mkdir(parents=True)
        for path in self.paths:
            (root / path).write_bytes(pristine(version, path))
        for path in self.paths:
            (root / path).chmod(0o755 if path.endswith("nmt.py") else 0o644)
        (root / "nematus/score.py").write_text("an unrelated file\n")

    def apply(self, *arguments: str) -> subprocess.CompletedProcess:
        """Runs apply.py in this process: it is faster so."""
        self.program.sys.argv[:] = ["apply.py", arguments[0], str(self.root), *arguments[1:]]
        with redirect_stdout(io.StringIO()) as said, redirect_stderr(io.StringIO()) as complained:
            status = self.program.main()
        return subprocess.CompletedProcess(arguments, status, said.getvalue(), complained.getvalue())

    def cut(self, command: str, n: int) -> int:
        """Runs apply.py in a process that ends, as in a power cut, when it renames or removes the n-th file."""
        arguments = [str(self.patches / "apply.py"), command, str(self.root), str(n)]
        return subprocess.run([sys.executable, "-ISc", CUT, *arguments], capture_output=True).returncode

    def git(self, *arguments: str) -> str:
        someone = ["-c", "user.name=Someone", "-c", "user.email=someone@example.invalid"]
        hidden = {"GIT_CEILING_DIRECTORIES": str(self.root.parent), "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.root)}
        command = ["git", *someone, *arguments]
        environment = {**os.environ, **hidden}
        return subprocess.run(
            command, cwd=self.root, env=environment, check=True, capture_output=True, text=True
        ).stdout

    def snapshot(self) -> dict[str, tuple[int, bytes]]:
        return {f.name: (f.stat().st_mode, f.read_bytes()) for f in sorted((self.root / "nematus").iterdir())}


@pytest.fixture(params=VERSIONS)
def tree(request, patches, tmp_path):
    return Tree(patches, tmp_path / "tree", request.param)


@pytest.fixture
def v03(patches, tmp_path):
    return Tree(patches, tmp_path / "tree", "v0.3")


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
def test_recognises_applies_and_reverts_exactly(tree, ending):
    for path in tree.paths:
        file = tree.root / path
        file.write_bytes(file.read_bytes().replace(b"\n", ending))
        file.chmod(0o755 if path.endswith("nmt.py") else 0o640)
    before = tree.snapshot()
    status = tree.apply("status")
    assert status.stdout.startswith(f"{tree.series}: pristine\n  Nematus {tree.version}, commit ")
    assert status.stdout.count("  not yet  ") == 2
    applied = tree.apply("apply")
    assert (applied.returncode, applied.stderr) == (0, "")
    assert applied.stdout.endswith(f"\n{tree.series}: applied 2 of 2\n")
    for name, (mode, data) in tree.snapshot().items():
        path = f"nematus/{name}"
        if path in [*tree.paths, MODULE]:
            assert data.count(ending) == data.count(b"\n") > 0
        assert mode == before.get(name, (0o100644,))[0]
    assert tree.snapshot()["rmsnorm.py"][1].replace(b"\r\n", b"\n") == (
        (PATCHES / "nematus-common/rmsnorm.py").read_bytes()
    )
    assert tree.apply("status").stdout.count("  applied  ") == 2
    assert "nothing to do" in tree.apply("apply").stdout
    reverted = tree.apply("revert")
    assert reverted.stdout.endswith(f"\n{tree.series}: pristine\n")
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


@pytest.mark.usefixtures("git")
def test_leaves_a_dirty_tree_as_dirty_as_it_was(tree):
    tree.git("init", "--quiet")
    tree.git("add", ".")
    tree.git("commit", "--quiet", "--message", "all")
    (tree.root / "nematus/score.py").write_text("edited\n")
    (tree.root / "nematus/untracked.py").write_text("new\n")
    before = tree.git("status", "--porcelain")
    assert tree.apply("apply").returncode == 0
    assert tree.git("status", "--porcelain") != before
    assert tree.apply("revert").returncode == 0
    assert tree.git("status", "--porcelain") == before


def test_status_says_that_master_has_rmsnorm_itself(tree):
    assert ("has rmsnorm itself" in tree.apply("status").stdout) == (tree.version == "master")


def test_stops_after_the_module(v03):
    assert v03.apply("apply", "--through", "add-module").stdout.endswith("nematus-v0.3: applied 1 of 2\n")
    assert v03.apply("revert", "--through", "add-rmsnorm").stdout.endswith("  nothing to do\n")
    assert v03.apply("apply").stdout.endswith("nematus-v0.3: applied 2 of 2\n")
    assert v03.apply("revert", "--through", "add-rmsnorm").stdout.endswith("nematus-v0.3: applied 1 of 2\n")
    assert (v03.root / MODULE).exists()


def test_a_drifted_file_is_named_with_what_to_insert_and_where(tree):
    for path in tree.paths:
        (tree.root / path).write_bytes(pristine(tree.version, path))
    drifted = tree.root / tree.paths[0]
    drifted.write_bytes(drifted.read_bytes() + b"# mine\n")
    before = tree.snapshot()
    result = tree.apply("apply")
    assert result.returncode == 2
    assert tree.snapshot() == before
    first, *details = result.stderr.splitlines()
    assert f"{tree.paths[0]} has drifted: its id is {blob_id(drifted.read_bytes())[:12]}" in first
    assert blob_id(pristine(tree.version, tree.paths[0]))[:12] in first
    assert "by hand put in" in first
    assert re.match(r"  (after|as|in|among) .*:$", details[0]), details[0]
    assert any("rmsnorm" in line for line in details)
    assert tree.apply("status").stdout.startswith(f"{tree.series}: pristine\n  Nematus {tree.version}")


def test_every_file_but_one_may_have_drifted_and_the_version_is_still_known(tree):
    for path in tree.paths[1:]:
        (tree.root / path).write_bytes(pristine(tree.version, path)[:-1])
    result = tree.apply("apply")
    assert result.stdout.startswith(tree.series)
    assert all(f"{path} has drifted" in result.stderr for path in tree.paths[1:])


def test_lines_put_in_by_hand_count_and_have_to_be_taken_out_by_hand(v03):
    file = v03.root / "nematus/layers.py"
    mine = file.read_bytes().replace(b"line 300\n", b"line 300, edited\n")
    file.write_bytes(mine)
    _, place, *lines = v03.apply("apply").stderr.splitlines()
    assert place == "  after the class LayerNormLayer:"
    block = "".join(line[4:] + "\n" for line in lines)
    assert re.fullmatch(r"import rmsnorm\n\nLayerNormLayer = .*\n+", block)
    by_hand = mine.replace(b"line 129\n", b"line 129\n" + block.encode())
    file.write_bytes(by_hand)
    assert v03.apply("apply").stdout.endswith("nematus-v0.3: applied 2 of 2\n")
    assert file.read_bytes() == by_hand
    refused = v03.apply("revert")
    assert (refused.returncode, "by hand take out" in refused.stderr) == (2, True)
    assert (v03.root / MODULE).exists()
    file.write_bytes(mine)
    assert v03.apply("revert").stdout.endswith("nematus-v0.3: pristine\n")
    assert file.read_bytes() == mine
    assert not (v03.root / MODULE).exists()


def test_equal_lines_for_two_places_have_to_be_there_twice(patches, tmp_path):
    tree = Tree(patches, tmp_path / "tree", "master")
    file = tree.root / "nematus/transformer_blocks.py"
    file.write_bytes(b"# mine\n" + file.read_bytes())
    said = tree.apply("apply").stderr.split("  in AttentionBlock")[1].splitlines()[1:]
    branch = "".join(line[4:] + "\n" for line in said if line.startswith("    ")).encode()
    assert branch.count(b"else:") == 2
    imports = tree.apply("apply").stderr.split("  after the imports:\n")[1].split("  in ")[0]
    imports = "".join(line[4:] + "\n" for line in imports.splitlines()).encode()
    file.write_bytes(imports + file.read_bytes() + branch[: len(branch) // 2])
    assert tree.apply("apply").returncode == 2
    file.write_bytes(file.read_bytes() + branch[len(branch) // 2 :])
    assert tree.apply("apply").stdout.endswith("nematus-master: applied 2 of 2\n")


def test_another_file_in_the_way_of_the_module_is_kept(tree):
    (tree.root / MODULE).write_text("mine\n")
    before = tree.snapshot()
    result = tree.apply("apply")
    assert (result.returncode, "move the file away" in result.stderr) == (2, True)
    assert tree.snapshot() == before


def test_a_module_that_was_edited_is_not_left_behind_in_silence(tree):
    tree.apply("apply")
    module = tree.root / MODULE
    module.write_bytes(module.read_bytes().replace(b"EPSILON = 1e-5", b"EPSILON = 1e-6"))
    before = tree.snapshot()
    for command in ("revert", "apply", "status"):
        result = tree.apply(command)
        assert (result.returncode, f"{MODULE} has drifted" in result.stderr) == (2, True)
        assert "move the file away" in result.stderr
        assert tree.snapshot() == before
    module.unlink()
    assert tree.apply("revert").stdout.endswith(f"\n{tree.series}: pristine\n")


def test_a_read_only_file_is_refused_before_anything_is_written(tree):
    (tree.root / tree.paths[-1]).chmod(0o444)
    before = tree.snapshot()
    result = tree.apply("apply")
    assert (result.returncode, "chmod u+w" in result.stderr) == (2, True)
    assert tree.snapshot() == before


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
pathlib.Path.unlink = lambda self, *a, **k: (cut(real) if self.name == "rmsnorm.py" else real)(self, *a, **k)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize("command", ["apply", "revert"])
@pytest.mark.parametrize("then", ["apply", "revert"])
def test_goes_on_or_back_after_a_cut_at_every_file(v03, command, then):
    before = v03.snapshot()
    v03.apply("apply")
    after = v03.snapshot()
    for n in range(len(v03.paths) + 1):
        v03.apply("revert" if command == "apply" else "apply")
        assert v03.snapshot() == (before if command == "apply" else after)
        assert v03.cut(command, n) == 9
        # In whatever order: a file that imports the module is never there without it.
        if (v03.root / "nematus/layers.py").read_bytes() != before["layers.py"][1]:
            assert (v03.root / MODULE).exists()
        assert v03.apply(then).returncode == 0
        assert v03.snapshot() == (after if then == "apply" else before)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"nmt.py": "an old one\n", "theano_util.py": ""}, ["Nematus wmt17.v0.3, on Theano", *VERSIONS]),
        ({"nmt.py": "unknown\n", "theano_util.py": ""}, ["is Nematus, on Theano", *VERSIONS]),
        ({"nmt.py": "unknown\n"}, ["not known here", *VERSIONS]),
        ({}, ["not known here", *VERSIONS]),
    ],
)
def test_other_trees_are_refused_by_name(patches, tmp_path, files, words):
    copy = shutil.copytree(patches, tmp_path / "patches")
    old = (copy / "nematus-common/old").read_text().splitlines()
    assert [line.split()[1] for line in old] == ["v0.1", "v0.2", "v0.2.1", "wmt17.v0.3", "wmt17.v0.4"]
    old[3] = f"{blob_id(b'an old one' + bytes([10]))} wmt17.v0.3"
    (copy / "nematus-common/old").write_text("\n".join(old))
    (tmp_path / "tree/nematus").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "tree/nematus" / name).write_text(text)
    result = subprocess.run(
        [sys.executable, "-IS", str(copy / "apply.py"), "apply", str(tmp_path / "tree")], capture_output=True, text=True
    )
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert all(word in result.stderr for word in words), result.stderr


def test_the_inner_folder_is_refused(v03):
    v03.root = v03.root / "nematus"
    result = v03.apply("apply")
    assert (result.returncode, "contains no nmt/ and no nematus/" in result.stderr) == (2, True)
