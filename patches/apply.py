#!/usr/bin/env python3
"""Applies a series of patches to a source tree, or takes them back, exactly.

    python patches/apply.py status DIR                    which patches are applied
    python patches/apply.py apply  DIR [--through PATCH]  apply all, or up to and with PATCH
    python patches/apply.py revert DIR [--through PATCH]  take back all, or down to and with PATCH
    python patches/apply.py check  DIR [--through PATCH]  say what apply would do, write nothing

DIR is the folder that contains `nmt/` or `nematus/`, a checkout or a copy; git is not used.

The `index` line of a patch holds the ids of a file before and after it. An id is the SHA-1 of a
short header and the file's bytes, so the id of a file tells how many patches it has: none
(pristine), k of n, or that it is none of the states known here (drifted) and must not be touched.
Which Nematus a tree is, and so which series is for it, is told by the ids of its files, too.
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
from pathlib import Path
from typing import NamedTuple, NoReturn

HERE = Path(__file__).resolve().parent
ABSENT = "0" * 40  # What stands for the id of a file that is not there.

_FILE = re.compile(
    rb"a/(\S+) b/\1\n(?:new file mode [0-7]{6}\n)?index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: [0-7]{6})?\n"
    rb"--- (?:a/\1|/dev/null)\n\+\+\+ b/\1\n"
)
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_VERBS = {"apply": "applied", "revert": "reverted", "check": "would apply"}


class Refused(Exception):
    """Why nothing is done: what came, what is allowed and what to do."""


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
    places: list[str]  # In words, for somebody who makes the change by hand: one for each hunk, or none.

    def reverse(self) -> Change:
        hunks = [Hunk(hunk.new_at, hunk.new, hunk.old_at, hunk.old) for hunk in self.hunks]
        return Change(self.new_id, self.old_id, hunks, self.places)


class Patch(NamedTuple):
    """One patch of a series: its file name, and what it changes by path."""

    name: str
    changes: dict[str, Change]


class File(NamedTuple):
    """A file of the tree: its content with LF endings, if it is there, and what else it is on disk."""

    location: Path
    text: bytes | None
    crlf: bool
    mode: int


def blob_id(text: bytes | None) -> str:
    """Returns the id that git gives to a file with this content."""
    return ABSENT if text is None else hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


def _to_lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


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
    """Reads a mail-formatted patch that changes or adds text files."""
    changes = {}
    message, *parts = re.split(rb"^diff --git ", text, flags=re.M)
    for part in parts:
        header, *hunks = re.split(rb"^(?=@@ )", part, flags=re.M)
        file = _FILE.fullmatch(header)
        if not file or not hunks:
            _damaged(name, "a file in it has no header with full ids in the index line, or no hunk")
        path, old_id, new_id = (group.decode() for group in file.groups())
        places = re.findall(rf"^Where: {re.escape(path)}: (.+)$", message.decode(), flags=re.M)
        changes[path] = Change(old_id, new_id, [_parse_hunk(name, hunk) for hunk in hunks], places)
    if not changes:
        _damaged(name, "it has no diff")
    return Patch(name, changes)


def read_series(folder: Path) -> list[str]:
    """Returns the lines of `folder/series`: the patches, and comments, which begin with #."""
    try:
        return (folder / "series").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        _damaged(f"the series {folder.name}", str(error))


def load_series(folder: Path) -> list[Patch]:
    """Reads the patches that `folder/series` lists, in order, each starting where the last ends."""
    patches, last = [], {}
    for name in (line for line in read_series(folder) if not line.startswith("#")):
        try:
            text = _to_lf((folder / name).read_bytes())
        except OSError as error:
            _damaged(f"the series {folder.name}", str(error))
        patch = parse_patch(Path(name).name, text)
        for path, change in patch.changes.items():
            if last.setdefault(path, change.old_id) != change.old_id:
                before = f"{path} {change.old_id[:12]}, but the one before ends at {last[path][:12]}"
                _damaged(patch.name, f"it starts from {before}")
            last[path] = change.new_id
        patches.append(patch)
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
    """Returns the name of the series for the tree: for a Nematus, the one that knows most of its files."""
    if (target / "nmt").is_dir():
        return "nmt"
    if not (target / "nematus").is_dir():
        what = "contains no nmt/ and no nematus/" if target.is_dir() else "is no folder"
        raise Refused(f"{target} {what}; give the folder that contains one of them")
    files = {f"nematus/{file.name}": file for file in (target / "nematus").glob("*.py") if file.is_file()}
    found = {path: blob_id(_to_lf(file.read_bytes())) for path, file in files.items()}
    known = {}
    for folder in sorted(file.parent for file in HERE.glob("nematus-*/series")):
        patches = load_series(folder)
        ids = {path: expected_ids(patches, path) for patch in patches for path in patch.changes}
        known[folder.name] = sum(found.get(path) in ids[path] for path in ids if ids[path][0] != ABSENT)
    if any(known.values()):
        return max(known, key=known.__getitem__)
    old = dict(line.split(" ", 1) for line in (HERE / "nematus-common/old").read_text().splitlines())
    name = f"Nematus {old.get(found.get('nematus/nmt.py'), '')}".strip()
    what = "on Theano" if "nematus/theano_util.py" in found else "of a version that is not known here"
    versions = ", ".join(name.partition("-")[2] for name in known)
    raise Refused(f"{target} is {name}, {what}; nothing was changed; check out one of {versions}")


def read_file(target: Path, path: str, optional: bool) -> File:
    """Reads a file of the tree, following links, so that a link stays one when it is written."""
    location = (target / path).resolve()
    if optional and not location.exists():
        return File(location, None, False, 0o644)
    if not location.is_file():
        raise Refused(f"{path} is no file in {target}; nothing was changed; restore it")
    data = location.read_bytes()
    text = _to_lf(data)
    if text != data != text.replace(b"\n", b"\r\n"):
        raise Refused(
            f"{path} has both LF and CRLF line endings; nothing was changed; "
            "restore the file, or give all its lines the same ending"
        )
    return File(location, text, text != data, stat.S_IMODE(location.stat().st_mode))


def read_files(target: Path, patches: list[Patch]) -> dict[str, File]:
    """Reads what the patches change, by path. A file that they add will end its lines as the others do."""
    paths = {path: expected_ids(patches, path)[0] == ABSENT for patch in patches for path in patch.changes}
    files = {path: read_file(target, path, optional) for path, optional in paths.items()}
    crlf = any(file.crlf for file in files.values())
    return {path: file._replace(crlf=crlf) if file.text is None else file for path, file in files.items()}


def count_applied(file: File, path: str, patches: list[Patch]) -> int:
    """Returns how many patches a file has: by its id or, if it has drifted, by the lines that are in it.

    Patches that leave it alone count as applied.
    """
    ids, found = expected_ids(patches, path), blob_id(file.text)
    if found in ids:
        return max(k for k, id_ in enumerate(ids) if id_ == found)
    for k, patch in enumerate(patches):
        text = b"\n" + file.text
        for hunk in patch.changes[path].hunks if path in patch.changes else []:
            _, there, text = text.partition(b"\n" + b"\n".join(hunk.new).strip(b"\n"))
            if not there:
                return k
    return len(patches)


def explain_drift(file: File, path: str, patches: list[Patch], undo: bool) -> str:
    """Says that the id of a file is not known here, and what somebody can do about it."""
    names = ["pristine"] + [f"after {patch.name}" for patch in patches]
    ids = dict(zip(reversed(expected_ids(patches, path)), reversed(names)))
    known = ", ".join(f"{'absent' if id_ == ABSENT else id_[:12]} ({ids[id_]})" for id_ in reversed(ids))
    said = f"{path} has drifted: its id is {blob_id(file.text)[:12]}, expected is one of {known}; nothing was changed; "
    if "absent" in known:
        return said + "move the file away"
    said += f"restore the file, or by hand {'take out' if undo else 'put in'} the lines of the patch"
    for change in (patch.changes[path] for patch in patches if path in patch.changes):
        for place, hunk in zip(change.places, change.hunks):
            said += f"\n  {place}:" + "".join("\n" + f"    {line.decode()}".rstrip() for line in hunk.new)
    return said


def describe(counts: dict[str, int], patches: list[Patch]) -> str:
    """Says in words which state the tree is in, from the number of patches that each file has."""
    total = len(patches)
    for k in range(total + 1):
        # With k patches a file also has those after them that leave it alone.
        has = {path: next((i for i in range(k, total) if path in patches[i].changes), total) for path in counts}
        if has == counts:
            return f"applied {k} of {total}" if k else "pristine"
    return "interrupted: some files have more of the patches than others; apply or revert mends it"


def rewrite(text: bytes | None, change: Change, name: str) -> bytes | None:
    """Returns the text after the change. Places are exact: the id before says what is there."""
    lines = (text or b"").split(b"\n")
    result, position = [], 0
    for hunk in change.hunks:
        end = hunk.old_at + len(hunk.old)
        if hunk.old_at < position or lines[hunk.old_at : end] != hunk.old:
            _damaged(name, f"line {hunk.old_at + 1} of the file is not what its hunk says")
        result += lines[position : hunk.old_at] + hunk.new
        position = end
    result = b"\n".join(result + lines[position:])
    result = None if change.new_id == ABSENT and not result else result
    if blob_id(result) != change.new_id:
        _damaged(name, f"its hunks give {blob_id(result)[:12]}, it says {change.new_id[:12]}")
    return result


def require_writable(files: dict[str, File]) -> None:
    """Raises when a file is read-only. The mode counts, because an administrator may write all."""
    for path, file in files.items():
        if file.location.exists() and not (file.mode & stat.S_IWUSR and os.access(file.location, os.W_OK)):
            raise Refused(f"{path} is read-only; nothing was changed; make it writable (chmod u+w) and retry")


def _beside(file: File) -> Path:
    return file.location.with_name(f".{file.location.name}.patched")


def write_files(files: dict[str, File]) -> None:
    """Writes each file beside the old one, with its mode, and renames or removes when all are written."""
    staged = []
    try:
        for file in (file for file in files.values() if file.text is not None):
            staged.append(file)
            with open(_beside(file), "wb") as stream:
                stream.write(file.text.replace(b"\n", b"\r\n") if file.crlf else file.text)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(_beside(file), file.mode)
        while staged:
            os.replace(_beside(staged[0]), staged[0].location)
            del staged[0]
        for file in (file for file in files.values() if file.text is None):
            file.location.unlink()
    finally:
        for file in staged:
            _beside(file).unlink(missing_ok=True)


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

    files = read_files(target, patches)
    counts = {path: count_applied(file, path, patches) for path, file in files.items()}
    drifted = [path for path, file in files.items() if blob_id(file.text) not in expected_ids(patches, path)]
    print(f"{series}: {describe(counts, patches)}")
    if command == "status":
        print("".join(f"  {line[2:]}\n" for line in read_series(HERE / series) if line.startswith("# ")), end="")
        for k, name in enumerate(names):
            print(f"  {'applied' if min(counts.values()) > k else 'not yet'}  {name}")
        if drifted:
            said = [explain_drift(files[path], path, patches, counts[path] == len(patches)) for path in drifted]
            raise Refused("\n".join(said))
        return

    changed, manual, report = {}, {}, []
    for k in reversed(range(goal, len(patches))) if undo else range(goal):
        for path, change in patches[k].changes.items():
            if (counts[path] > k) != undo:
                continue
            if path in drifted:
                manual[path] = explain_drift(files[path], path, patches, undo)
            else:
                change = change.reverse() if undo else change
                file = changed.get(path, files[path])
                changed[path] = file._replace(text=rewrite(file.text, change, names[k]))
                ids = f"{change.old_id[:12]} -> {change.new_id[:12]}"
                report.append(f"  {_VERBS[command]} {names[k]}: {path} {ids}")
    if manual:
        raise Refused("\n".join(manual.values()))
    require_writable(changed)
    if command != "check":
        for file in files.values():
            _beside(file).unlink(missing_ok=True)  # From a run that was interrupted.
        write_files(changed)
    print("\n".join(report or ["  nothing to do"]))
    if changed and command != "check":
        counts.update((path, count_applied(file, path, patches)) for path, file in changed.items())
        print(f"{series}: {describe(counts, patches)}")


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
