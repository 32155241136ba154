"""apply.py on an edited or unknown Nematus: it changes nothing and says what to do."""

import re
import shutil
import subprocess
import sys

import pytest

from tests.patches.trees import MODULE, VERSIONS, Tree, blob_id, pristine


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
    assert f"use `--skip {tree.paths[0]}` and insert these lines by hand" in first
    assert re.match(r"  (after|as|in|among) .*:$", details[0]), details[0]
    assert any("rmsnorm" in line for line in details)
    status = tree.apply("status")
    assert status.stdout.startswith(
        f"{tree.series}: drifted: {tree.paths[0]}\n  Nematus {tree.version}"
    )
    assert (status.returncode, status.stderr.splitlines()[1:]) == (2, details)
    assert re.findall("  (not yet|unknown|applied)  ", status.stdout) == ["not yet", "unknown"]


def test_every_file_but_one_may_have_drifted_and_the_version_is_still_known(tree):
    for path in tree.paths[1:]:
        (tree.root / path).write_bytes(pristine(tree.version, path)[:-1])
    result = tree.apply("apply")
    assert result.stdout.startswith(tree.series)
    assert all(f"{path} has drifted" in result.stderr for path in tree.paths[1:])


def test_a_drifted_file_is_changed_by_hand_and_the_others_by_the_script(v03):
    file = v03.root / "nematus/layers.py"
    mine = file.read_bytes().replace(b"line 300\n", b"line 300, edited\n")
    file.write_bytes(mine)
    before = v03.snapshot()
    _, place, *lines = v03.apply("apply").stderr.splitlines()
    assert place == "  after the class LayerNormLayer:"
    block = "".join(line[4:] + "\n" for line in lines)
    assert re.fullmatch(r"import rmsnorm\n\nLayerNormLayer = .*\n+", block)
    by_hand = mine.replace(b"line 129\n", b"line 129\n" + block.encode())
    file.write_bytes(by_hand)
    skip = ("--skip", "nematus/layers.py")
    assert v03.apply("apply", *skip).stdout.endswith("nematus-v0.3: applied 2 of 2\n")
    assert file.read_bytes() == by_hand
    assert "all of the patches' lines are there" in v03.apply("apply").stderr
    refused = v03.apply("revert")
    assert (refused.returncode, "remove these lines by hand" in refused.stderr) == (2, True)
    file.write_bytes(mine)
    assert v03.apply("revert", *skip).stdout.endswith("nematus-v0.3: pristine\n")
    assert v03.snapshot() == before


def test_a_patch_of_skipped_files_alone_is_neither_applied_nor_missing(v03):
    lines = v03.apply("status", "--skip", "nematus/rmsnorm.py").stdout.splitlines()
    assert "nematus-v0.3: pristine" in lines
    assert [line.split() for line in lines if "add-" in line] == [
        ["skipped", "add-module.patch"],
        ["not", "yet", "add-rmsnorm.patch"],
    ]


def test_drift_shows_the_lines_of_every_place_in_the_file(patches, tmp_path):
    tree = Tree(patches, tmp_path / "tree", "master")
    file = tree.root / "nematus/transformer_blocks.py"
    file.write_bytes(b"# mine\n" + file.read_bytes())
    said = tree.apply("apply").stderr
    for place in ("after the imports", "in AttentionBlock.__init__", "in FFNBlock.__init__"):
        assert said.count(f"\n  {place}") == 1
    assert said.count("            else:\n") == 2


def test_an_edited_module_is_refused(tree):
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


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"nmt.py": "an old one\n"}, ["Nematus wmt17.v0.3, which uses Theano", *VERSIONS]),
        ({"nmt.py": "unknown\n"}, ["an unknown version of Nematus", *VERSIONS]),
        ({}, ["an unknown version of Nematus", *VERSIONS]),
    ],
)
def test_other_trees_are_refused_by_name(patches, tmp_path, files, words):
    copy = shutil.copytree(patches, tmp_path / "patches")
    old = (copy / "nematus-common/old").read_text().splitlines()
    assert [line.split()[1] for line in old] == [
        "v0.1",
        "v0.2",
        "v0.2.1",
        "wmt17.v0.3",
        "wmt17.v0.4",
    ]
    old[3] = f"{blob_id(b'an old one' + bytes([10]))} wmt17.v0.3"
    (copy / "nematus-common/old").write_text("\n".join(old))
    (tmp_path / "tree/nematus").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "tree/nematus" / name).write_text(text)
    result = subprocess.run(
        [sys.executable, "-IS", str(copy / "apply.py"), "apply", str(tmp_path / "tree")],
        capture_output=True,
        text=True,
    )
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert all(word in result.stderr for word in words), result.stderr
