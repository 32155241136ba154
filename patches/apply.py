#!/usr/bin/env python3
"""Applies a series of patches to a source tree, or takes them back, exactly.

    python patches/apply.py status DIR                    which patches are applied
    python patches/apply.py apply  DIR [--through PATCH]  apply all, or up to and with PATCH
    python patches/apply.py revert DIR [--through PATCH]  take back all, or down to and with PATCH
    python patches/apply.py check  DIR [--through PATCH]  say what apply would do, write nothing

DIR is the folder that contains `nmt/`. It need not be a git repository, and git is not used.

The `index` line of a patch holds the ids of a file before and after it. An id is the SHA-1 of a
short header and the file's bytes, so the id of a file tells how many patches it has: none
(pristine), k of n, or that it is none of the states known here (drifted) and must not be touched.
Every file is looked at before any is written; a new file is written beside the old one and renamed
over it. A file whose lines all end in CRLF is treated as if they ended in LF, and keeps its CRLF.

The exit status is 0 when all is well or nothing is left to do, and 2 otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import stat
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, NoReturn

HERE = Path(__file__).resolve().parent

_FILE = re.compile(rb"a/(\S+) b/\1\nindex ([0-9a-f]{40})\.\.([0-9a-f]{40}) [0-7]{6}\n--- a/\1\n\+\+\+ b/\1\n")
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_VERBS = {"apply": "applied", "revert": "reverted", "check": "would apply"}


class Refused(Exception):
    """Why nothing is done: what came, what is allowed and what to do, in one line."""


class Hunk(NamedTuple):
    """The `old` lines, which begin at line `old_at` (from 0), become `new` at line `new_at`."""

    old_at: int
    old: list[bytes]
    new_at: int
    new: list[bytes]


class Change(NamedTuple):
    """What one patch does to one file, pinned by the ids of the file before and after."""

    old_id: str
    new_id: str
    hunks: list[Hunk]

    def reverse(self) -> Change:
        hunks = [Hunk(hunk.new_at, hunk.new, hunk.old_at, hunk.old) for hunk in self.hunks]
        return Change(self.new_id, self.old_id, hunks)


class Patch(NamedTuple):
    """One patch of a series: its file name, and what it changes by path."""

    name: str
    changes: dict[str, Change]


class File(NamedTuple):
    """A file of the tree: its content with LF endings, and what else it is on disk."""

    location: Path
    text: bytes
    crlf: bool
    mode: int


def blob_id(text: bytes) -> str:
    """Returns the id that git gives to a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


def _damaged(name: str, what: str) -> NoReturn:
    raise Refused(
        f"{name} is damaged: {what}; nothing was changed; get the patch again from where this "
        "project came from (git checkout, or unpack the archive anew)"
    )


def _parse_hunk(name: str, text: bytes) -> Hunk:
    header, *lines = text.rstrip(b"\n").split(b"\n")
    place = _HUNK.match(header)
    old = [line[1:] for line in lines if line.startswith((b" ", b"-"))]
    new = [line[1:] for line in lines if line.startswith((b" ", b"+"))]
    if not place or any(not line.startswith((b" ", b"-", b"+")) for line in lines):
        _damaged(name, f"the hunk '{header.decode()}' has a line that is not part of a diff")
    old_line, old_count, new_line, new_count = (int(group or b"1") for group in place.groups())
    if (len(old), len(new)) != (old_count, new_count):
        _damaged(name, f"the hunk '{header.decode()}' has more or fewer lines than it says")
    # A side without lines states the line it comes after, any other side its first line.
    return Hunk(old_line - bool(old), old, new_line - bool(new), new)


def parse_patch(name: str, text: bytes) -> Patch:
    """Reads a mail-formatted patch that changes existing text files."""
    changes = {}
    for part in re.split(rb"^diff --git ", text, flags=re.M)[1:]:
        header, *hunks = re.split(rb"^(?=@@ )", part, flags=re.M)
        file = _FILE.fullmatch(header)
        if not file or not hunks:
            _damaged(name, "a file in it has no header with full ids in the index line, or no hunk")
        path, old_id, new_id = (group.decode() for group in file.groups())
        changes[path] = Change(old_id, new_id, [_parse_hunk(name, hunk) for hunk in hunks])
    if not changes:
        _damaged(name, "it has no diff")
    return Patch(name, changes)


def load_series(folder: Path) -> list[Patch]:
    """Reads the patches that `folder/series` lists, in order, each starting where the last ends."""
    patches = []
    try:
        for name in (folder / "series").read_text(encoding="utf-8").split():
            text = (folder / name).read_bytes().replace(b"\r\n", b"\n")
            patches.append(parse_patch(name, text))
    except (OSError, UnicodeDecodeError) as error:
        _damaged(f"the series {folder.name}", str(error))
    last = {}
    for patch in patches:
        for path, change in patch.changes.items():
            if last.setdefault(path, change.old_id) != change.old_id:
                before = f"{path} {change.old_id[:12]}, but the one before ends at {last[path][:12]}"
                _damaged(patch.name, f"it starts from {before}")
            last[path] = change.new_id
    if not patches:
        _damaged(f"the series {folder.name}", "it lists no patch")
    return patches


def expected_ids(patches: list[Patch], path: str) -> list[str]:
    """Returns the ids of a file after none, one, ... and all of the patches."""
    changes = [patch.changes.get(path) for patch in patches]
    ids = [next(change.old_id for change in changes if change)]
    for change in changes:
        ids.append(change.new_id if change else ids[-1])
    return ids


def find_series(target: Path) -> str:
    """Returns the name of the series for the tree: so far that of the package it contains."""
    if not (target / "nmt").is_dir():
        what = "contains no nmt/" if target.is_dir() else "is no folder"
        raise Refused(f"{target} {what}; give the folder that contains nmt/")
    return "nmt"


def read_file(target: Path, path: str) -> File:
    """Reads a file of the tree, following links, so that a link stays one when it is written."""
    location = (target / path).resolve()
    if not location.is_file():
        raise Refused(f"{path} is no file in {target}; nothing was changed; restore it")
    data = location.read_bytes()
    text = data.replace(b"\r\n", b"\n")
    crlf = data != text
    if crlf and text.replace(b"\n", b"\r\n") != data:
        raise Refused(
            f"{path} has both LF and CRLF line endings; nothing was changed; "
            "restore the file, or give all its lines the same ending"
        )
    return File(location, text, crlf, stat.S_IMODE(location.stat().st_mode))


def count_applied(file: File, path: str, patches: list[Patch]) -> int:
    """Returns how many patches a file has; patches that leave it alone count as applied."""
    ids, found = expected_ids(patches, path), blob_id(file.text)
    if found not in ids:
        names = ["pristine"] + [f"after {patch.name}" for patch in patches]
        known = ", ".join(f"{id_[:12]} ({name})" for id_, name in zip(ids, names))
        raise Refused(
            f"{path} has drifted: its id is {found[:12]}, expected is one of {known}; "
            "nothing was changed; restore the file, or put in the lines of the patch by hand"
        )
    return max(k for k, id_ in enumerate(ids) if id_ == found)


def describe(files: dict[str, File], patches: list[Patch]) -> str:
    """Says in words which state the tree is in."""
    for k in range(len(patches) + 1):
        if all(expected_ids(patches, path)[k] == blob_id(files[path].text) for path in files):
            return f"applied {k} of {len(patches)}" if k else "pristine"
    return "interrupted: some files have more of the patches than others; apply or revert mends it"


def rewrite(text: bytes, change: Change, name: str) -> bytes:
    """Returns the text after the change. Places are exact: the id before says what is there."""
    lines = text.split(b"\n")
    result, position = [], 0
    for hunk in change.hunks:
        end = hunk.old_at + len(hunk.old)
        if hunk.old_at < position or lines[hunk.old_at : end] != hunk.old:
            _damaged(name, f"line {hunk.old_at + 1} of the file is not what its hunk says")
        result += lines[position : hunk.old_at] + hunk.new
        position = end
    result = b"\n".join(result + lines[position:])
    if blob_id(result) != change.new_id:
        _damaged(name, f"its hunks give {blob_id(result)[:12]}, it says {change.new_id[:12]}")
    return result


def require_writable(files: dict[str, File]) -> None:
    """Raises when a file is read-only. The mode counts, because an administrator may write all."""
    for path, file in files.items():
        if not file.mode & stat.S_IWUSR or not os.access(file.location, os.W_OK):
            raise Refused(f"{path} is read-only; nothing was changed; make it writable (chmod u+w) and retry")


def write_files(files: dict[str, File]) -> None:
    """Writes each file beside the old one, with its mode, and renames when all are written."""
    staged = []
    try:
        for file in files.values():
            handle, name = tempfile.mkstemp(".tmp", f".{file.location.name}.", file.location.parent)
            staged.append((name, file.location))
            with open(handle, "wb") as stream:
                stream.write(file.text.replace(b"\n", b"\r\n") if file.crlf else file.text)
                stream.flush()
                os.fsync(handle)
            os.chmod(name, file.mode)
        while staged:
            os.replace(*staged[0])
            del staged[0]
    finally:
        for name, _ in staged:
            os.unlink(name)


def change_tree(command: str, target: Path, through: str | None) -> None:
    """Runs one command and prints what it does and the state before and after."""
    series = find_series(target)
    patches = load_series(HERE / series)
    names = [patch.name for patch in patches]
    undo = command == "revert"
    goal = 0 if undo else len(patches)
    if through:
        wanted = through if through.endswith(".patch") else through + ".patch"
        if wanted not in names:
            raise Refused(f"there is no {wanted} here; name one of {', '.join(names)}")
        goal = names.index(wanted) + (0 if undo else 1)

    files = {path: read_file(target, path) for patch in patches for path in patch.changes}
    counts = {path: count_applied(file, path, patches) for path, file in files.items()}
    print(f"{series}: {describe(files, patches)}")
    if command == "status":
        for k, name in enumerate(names):
            print(f"  {'applied' if min(counts.values()) > k else 'not yet'}  {name}")
        return

    changed, report = {}, []
    for k in reversed(range(goal, len(patches))) if undo else range(goal):
        for path, change in patches[k].changes.items():
            if (counts[path] > k) == undo:
                change = change.reverse() if undo else change
                file = changed.get(path, files[path])
                changed[path] = file._replace(text=rewrite(file.text, change, names[k]))
                ids = f"{change.old_id[:12]} -> {change.new_id[:12]}"
                report.append(f"  {_VERBS[command]} {names[k]}: {path} {ids}")
    require_writable(changed)
    if command != "check":
        write_files(changed)
    print("\n".join(report or ["  nothing to do"]))
    if changed and command != "check":
        print(f"{series}: {describe({**files, **changed}, patches)}")


def main() -> int:
    """Reads the command line, runs the command, returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["status", "apply", "revert", "check"])
    parser.add_argument("target", metavar="DIR", type=Path)
    parser.add_argument("--through", metavar="PATCH", help="where to stop, by its name in `series`")
    options = parser.parse_args()
    if options.command == "status" and options.through:
        parser.error("status takes no --through: it tells about all patches")
    try:
        change_tree(options.command, options.target, options.through)
    except Refused as error:
        print(f"apply.py: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"apply.py: {error}; mend that and run the same command again", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
