"""All patches: complete headers, small changes, and no line of Nematus."""

import ast
import re
from pathlib import Path

import pytest

PATCHES = Path(__file__).resolve().parents[2] / "patches"
ALL = sorted(PATCHES.glob("*/*.patch"))
NEMATUS = sorted(PATCHES.glob("nematus-*/*.patch"))
SERIES = sorted(PATCHES.glob("*/series"))

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
    r"diff --git a/(?P<path>(?:nematus|nmt)/\w+\.py) b/(?P=path)\n"
    r"(?P<added>new file mode 100644\n)?"
    r"index (?P<before>[0-9a-f]{40})\.\.(?P<after>[0-9a-f]{40})(?: 100644| 100755)?\n"
    r"--- (?:a/(?P=path)|/dev/null)\n"
    r"\+\+\+ b/(?P=path)\n"
)


def ids(text):
    return {file["path"]: (file["before"], file["after"]) for file in FILE.finditer(text)}


def series(file):
    return [line for line in file.read_text().splitlines() if not line.startswith("#")]


def name_of(path):
    return f"{path.parent.name}/{path.name}"


@pytest.mark.parametrize("patch", ALL, ids=name_of)
def test_a_patch_has_a_complete_header_and_only_adds_few_lines(patch):
    text = patch.read_bytes().decode("ascii")
    for field in FIELDS:
        assert len(re.findall(f"^{field}$", text, re.M)) == 1, field
    lines = text[text.index("\n@@ ") :].splitlines()
    added = [line for line in lines if re.match(r"\+(?!\+\+ )", line)]
    assert 0 < len(added) <= {"nmt": 16, "nematus-common": 130}.get(patch.parent.name, 40)
    assert not [line for line in lines if re.match("-(?!-- )", line)]


@pytest.mark.parametrize("patch", NEMATUS, ids=name_of)
def test_a_patch_of_nematus_has_no_line_of_it_and_says_where_each_hunk_belongs(patch):
    message, *parts = re.split(r"^(?=diff --git )", patch.read_text(), flags=re.M)
    for part in parts:
        header, *hunks = re.split(r"^@@ -\d+,0 \+\d+(?:,\d+)? @@\n", part, flags=re.M)
        file = FILE.fullmatch(header)
        assert file, header
        places = re.findall(rf"^Where: {file['path']}: .+$", message, re.M)
        assert len(places) == len(hunks) or file["added"]
        assert all(line.startswith("+") for line in "".join(hunks).splitlines())


@pytest.mark.parametrize("file", SERIES, ids=lambda path: path.parent.name)
def test_a_series_lists_its_patches(file):
    version = file.parent.name.partition("-")[2]
    names = series(file)
    if version:
        assert re.match(rf"# Nematus {version}, commit [0-9a-f]{{40}}\n", file.read_text())
        assert names[0] == "../nematus-common/add-module.patch"
    assert sorted(names[bool(version) :]) == sorted(
        path.name for path in file.parent.glob("*.patch")
    )


def test_no_file_of_one_version_is_mistaken_for_another():
    known = {}
    for file in PATCHES.glob("nematus-*/series"):
        for path, states in ids((file.parent / series(file)[1]).read_text()).items():
            for state in states:
                assert known.setdefault((path, state), file) == file


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
