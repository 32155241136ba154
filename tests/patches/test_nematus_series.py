"""The patches for Nematus: headers are complete, ids form a chain, and no line of Nematus is in them."""

import ast
import hashlib
import re
from pathlib import Path

import pytest

PATCHES = Path(__file__).resolve().parents[2] / "patches"
ALL = sorted(PATCHES.glob("nematus-*/*.patch"))
SERIES = sorted(PATCHES.glob("nematus-*/series"))
ABSENT = "0" * 40

FIELDS = [
    r"From 0{40} Mon Sep 17 00:00:00 2001",
    r"From: The rmsnorm-tf authors <authors@rmsnorm-tf\.invalid>",
    r"Date: \w{3}, \d+ \w{3} \d{4} \d\d:\d\d:\d\d \+0000",
    r"Subject: \[PATCH\] Add .+",
    r"Why: .+",
    r"What does not change: .+",
    r"How to test: .+",
]
FILE = re.compile(
    r"diff --git a/(?P<path>nematus/\w+\.py) b/(?P=path)\n"
    r"(?P<added>new file mode 100644\n)?"
    r"index (?P<before>[0-9a-f]{40})\.\.(?P<after>[0-9a-f]{40})(?: 100644| 100755)?\n"
    r"--- (?:a/(?P=path)|/dev/null)\n"
    r"\+\+\+ b/(?P=path)\n"
)


def faults(text):
    """Returns the faults of a patch for Nematus."""
    found = [
        f"no field {field}" for field in FIELDS if len(re.findall(f"^{field}$", text, re.M)) != 1
    ]
    message, *parts = re.split(r"^(?=diff --git )", text, flags=re.M)
    if not parts:
        found.append("no diff")
    for part in parts:
        header, *hunks = re.split(r"^(?=@@)", part, flags=re.M)
        file = FILE.fullmatch(header)
        if not file:
            found.append(f"an incomplete header: {header!r}")
            continue
        places = re.findall(rf"^Where: {file['path']}: .+$", message, re.M)
        if len(places) != len(hunks) and not file["added"]:
            found.append(f"{len(places)} fields Where and {len(hunks)} hunks for {file['path']}")
        if bool(file["added"]) != (file["before"] == ABSENT):
            found.append("`new file mode` and the id before the patch contradict each other")
        shift = 0
        for hunk in hunks:
            place, *lines = hunk.splitlines()
            numbers = re.fullmatch(r"@@ -(\d+),0 \+(\d+)(?:,(\d+))? @@", place)
            if not numbers:
                found.append(f"not an insertion alone, or text after @@: {place}")
                continue
            after, at, count = (int(number or 1) for number in numbers.groups())
            if (at, count) != (after + shift + 1, len(lines)):
                found.append(f"wrong counts: {place}")
            found += [f"not an inserted line: {line}" for line in lines if not line.startswith("+")]
            shift += len(lines)
    return found


def ids(text):
    return {file["path"]: (file["before"], file["after"]) for file in FILE.finditer(text)}


def breaks(texts):
    """Returns the files for which a patch does not start where the previous one ended, or changes nothing."""
    last = {}
    found = []
    for path, (before, after) in (item for text in texts for item in ids(text).items()):
        if last.get(path, before) != before or before == after:
            found.append(path)
        last[path] = after
    return found


def series(file):
    return [line for line in file.read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("patch", ALL, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_patch_is_complete_and_only_inserts(patch):
    assert faults(patch.read_bytes().decode("ascii")) == []


GOOD = (PATCHES / "nematus-v0.3/add-rmsnorm.patch").read_text()


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("+import rmsnorm\n", "+import rmsnorm\n context\n", "not an inserted line:  context"),
        ("+import rmsnorm\n", "-import rmsnorm\n", "not an inserted line: -import"),
        (" @@\n", " @@ class Some\n", "text after @@"),
        ("Why: ", "Because: ", "no field Why"),
        ("Where: nematus/model.py", "Where: nematus/other.py", "0 fields Where"),
        ("index ", "index 0", "an incomplete header"),
        ("From: The rmsnorm-tf", "From: Another", "no field From"),
        ("@@ -334,0 +335 @@", "@@ -334,0 +336 @@", "wrong counts"),
    ],
)
def test_the_check_finds_faults(old, new, fault):
    assert old in GOOD
    assert any(fault in found for found in faults(GOOD.replace(old, new, 1)))


@pytest.mark.parametrize("file", SERIES, ids=lambda path: path.parent.name)
def test_a_series_names_its_version_and_its_patches_make_a_chain(file):
    version = file.parent.name.partition("-")[2]
    names = series(file)
    assert re.match(rf"# Nematus {version}, commit [0-9a-f]{{40}}\n", file.read_text())
    assert names[0] == "../nematus-common/add-module.patch"
    assert sorted(names[1:]) == sorted(path.name for path in file.parent.glob("*.patch"))
    assert breaks([(file.parent / name).read_text() for name in names]) == []


def test_the_check_finds_a_broken_chain():
    assert breaks([GOOD]) == []
    assert breaks([GOOD, GOOD]) == list(ids(GOOD))


def test_no_file_of_one_version_is_mistaken_for_another():
    known = {}
    for file in SERIES:
        for path, states in ids((file.parent / series(file)[1]).read_text()).items():
            for state in states:
                assert known.setdefault((path, state), file) == file


def test_the_module_in_the_patch_is_the_one_beside_it():
    """Fails if patches/regenerate_nematus.py was not run after a change of nematus-common/rmsnorm.py."""
    data = (PATCHES / "nematus-common/rmsnorm.py").read_bytes()
    text = (PATCHES / "nematus-common/add-module.patch").read_text()
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    assert ids(text) == {"nematus/rmsnorm.py": (ABSENT, blob)}, "run patches/regenerate_nematus.py"
    added = text[text.index("\n@@ ") :].splitlines()[2:]
    assert "".join(f"{line[1:]}\n" for line in added) == data.decode()


def test_few_lines_are_inserted():
    for patch in ALL:
        lines = re.findall(r"^\+(?!\+\+ )", patch.read_text(), re.M)
        assert len(lines) <= (130 if patch.name == "add-module.patch" else 40)


def test_the_module_has_no_syntax_newer_than_python_2():
    tree = ast.parse((PATCHES / "nematus-common/rmsnorm.py").read_text())
    for node in ast.walk(tree):
        assert not isinstance(
            node, (ast.JoinedStr, ast.AnnAssign, ast.Nonlocal, ast.NamedExpr, ast.Starred)
        )
        if isinstance(node, ast.arguments):
            assert not node.kwonlyargs + node.posonlyargs
            assert not any(argument.annotation for argument in node.args)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            assert isinstance(node.left, ast.Constant) and isinstance(node.left.value, float), (
                ast.unparse(node)
            )
