"""regenerate.py keeps patches that fit, adapts them to a changed file, and refuses conflicts."""

import sys

import pytest

pytestmark = pytest.mark.usefixtures("git")


def patches(project):
    return {path.name: path.read_bytes() for path in project.series.glob("*.patch")}


def regenerate(project):
    return project.run(sys.executable, "patches/regenerate.py")


def replace(file, old, new):
    assert file.read_text().count(old) == 1
    file.write_bytes(file.read_bytes().replace(old.encode(), new.encode()))


def test_no_patch_is_stale(project):
    before = patches(project)
    result = regenerate(project)
    assert (result.returncode, result.stderr) == (0, "")
    assert patches(project) == before, "run `make patches`"


# A line far from every hunk, and a context line, which only a merge can adapt.
FAR = ('"""The kinds', '"""All the kinds')
NEAR = ("center=center, name=name", "name=name, center=center")


@pytest.mark.parametrize(("old", "new", "history"), [(*FAR, False), (*NEAR, True)])
def test_patches_are_adapted_to_a_changed_file(project, old, new, history):
    if history:
        project.commit_all()
    before = patches(project)
    replace(project.file, old, new)
    pristine = project.file.read_bytes()
    assert project.apply("status").returncode == 2

    result = regenerate(project)
    assert (result.returncode, result.stderr) == (0, "")
    assert "nmt: applied " in project.apply("apply").stdout
    assert new.encode() in project.file.read_bytes()
    assert project.apply("revert").returncode == 0
    assert project.file.read_bytes() == pristine
    for name, text in patches(project).items():
        assert text != before[name]
        assert text.split(b"\nindex ")[0] == before[name].split(b"\nindex ")[0]


def test_an_edited_message_is_kept(project):
    replace(project.series / "add-rmsnorm.patch", "Why: ", "Why: because. ")
    before = patches(project)
    assert regenerate(project).returncode == 0
    assert patches(project) == before


def already_applied(project):
    project.apply("apply", "--through", "add-rmsnorm", check=True)


def conflict(project):
    project.commit_all()
    replace(project.file, '    "layernorm": _layernorm,', '    "layernorm": _other,')


def near_without_history(project):
    replace(project.file, *NEAR)


def adopted(project):
    """Adds the lines of the first patch to the project's file, and another change."""
    project.commit_all()
    already_applied(project)
    replace(project.file, *FAR)


def damaged(project):
    (project.series / "add-rmsnorm.patch").write_text("")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (already_applied, ["has patches applied", "revert"]),
        (conflict, ["add-rmsnorm.patch does not apply", "no patch was changed"]),
        (near_without_history, ["add-rmsnorm.patch does not apply", "no patch was changed"]),
        (adopted, ["add-rmsnorm.patch changes nothing", "series"]),
        (damaged, ["add-rmsnorm.patch is damaged"]),
    ],
)
def test_refuses_in_one_line_and_changes_no_patch(project, spoil, words):
    spoil(project)
    before = patches(project)
    result = regenerate(project)
    assert result.returncode == 2
    assert result.stderr.startswith("regenerate.py: ")
    assert result.stderr.count("\n") == 1
    assert all(word in result.stderr for word in words), result.stderr
    assert patches(project) == before
