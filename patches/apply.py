#!/usr/bin/env python3
"""Applies a series of patches to a source tree and reverts them, without git.

    python patches/apply.py status DIR                    list the patches, and which are applied
    python patches/apply.py apply  DIR [--through PATCH]  apply all patches, or up to PATCH
    python patches/apply.py revert DIR [--through PATCH]  revert all patches, or down to PATCH
    python patches/apply.py check  DIR [--through PATCH]  print what apply would do, write nothing

DIR contains `nmt/` or `nematus/`. The git ids in the patches tell the version of Nematus, and
whether a file is pristine, patched or drifted. If any has drifted, nothing is changed. For a file
of Nematus, the message shows the lines to insert by hand; `--skip FILE` then patches the others.
CRLF line endings and links to files inside DIR are kept; other links are refused. One run waits for
another, but not on Windows or a network file system without locks: start no two at once there. The
exit status is 0, even if there is nothing to do, 2 on any error, or 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import signal
import stat
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, NoReturn

HERE = Path(__file__).resolve().parent
ABSENT = "0" * 40  # The id that git gives to a missing file.

_FILE = re.compile(
    rb"a/(\S+) b/\1\n(?:new file mode [0-7]{6}\n)?"
    rb"index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: [0-7]{6})?\n"
    rb"--- (?:a/\1|/dev/null)\n\+\+\+ b/\1\n"
)
_TEMPORARY = ".patched-"  # and 8 random characters
_VERBS = {"apply": "applied", "revert": "reverted", "check": "would apply"}


class Refused(Exception):
    """The command cannot be carried out; the message says why and what to do."""


class Change(NamedTuple):
    """The hunks of one patch in one file, with the blob ids of the file before and after."""

    patch: str
    path: str
    old_id: str
    new_id: str
    # (start, old, new): lines from index `start`, with context
    hunks: list[tuple[int, list[bytes], list[bytes]]]
    places: list[str]  # The `Where:` fields of the patch: one for each hunk, or none.


class Series(NamedTuple):
    """A file `series`: its comments, its patches in order, and all changes of the patches."""

    name: str
    comments: list[str]
    patches: list[str]
    changes: list[Change]


class File(NamedTuple):
    """A file of the tree, its content with LF line endings, None if missing, and its changes."""

    path: str
    location: Path
    text: bytes | None
    crlf: bool
    mode: int
    changes: list[Change]

    @property
    def ids(self) -> list[str]:
        """The ids of all known states: before the first change, and after each."""
        return [self.changes[0].old_id] + [change.new_id for change in self.changes]

    @property
    def applied(self) -> int | None:
        """The number of changes that are applied, or None if the file has drifted."""
        current = blob_id(self.text)
        return self.ids.index(current) if current in self.ids else None

    def state(self, number: int) -> str:
        """Returns the state of one of the changes in words."""
        if self.applied is None:
            return "unknown"
        return "applied" if number < self.applied else "not yet"


def blob_id(text: bytes | None) -> str:
    """Returns the id that git gives to a file with this content."""
    return ABSENT if text is None else hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


def _damaged(name: str, what: str) -> NoReturn:
    raise Refused(f"{name} is damaged: {what}; get a new copy of this project")


def parse_patch(name: str, text: bytes) -> list[Change]:
    """Parses a mail-formatted patch.

    The blob ids, compared when it is used, detect damaged hunks.
    """
    changes = []
    message, *parts = re.split(rb"^diff --git ", text.replace(b"\r\n", b"\n"), flags=re.M)
    for part in parts:
        header, *pairs = re.split(rb"^@@ -(\d+).*\n", part, flags=re.M)
        file = _FILE.fullmatch(header)
        if not file or not pairs:
            _damaged(
                name, "one of its files has no hunk, or no header with full ids in the index line"
            )
        path, old_id, new_id = (group.decode() for group in file.groups())
        places = re.findall(rf"^Where: {re.escape(path)}: (.+)$", message.decode(), flags=re.M)
        hunks = []
        for line_number, body in zip(pairs[::2], pairs[1::2]):
            old = re.findall(rb"^[ -](.*)$", body, flags=re.M)
            new = re.findall(rb"^[ +](.*)$", body, flags=re.M)
            start = int(line_number) - bool(old)  # Without old, insert after that line.
            hunks.append((start, old, new))
        changes.append(Change(name, path, old_id, new_id, hunks, places))
    return changes or _damaged(name, "it contains no diff")


def load_series(folder: Path) -> Series:
    """Reads the patches that `folder/series` lists."""
    name = f"the series {folder.name}"
    try:
        lines = (folder / "series").read_text(encoding="utf-8").splitlines()
        paths = [folder / line for line in lines if line[:2] != "# "]
        changes = [change for path in paths for change in parse_patch(path.name, path.read_bytes())]
    except (OSError, UnicodeDecodeError) as error:
        _damaged(name, str(error))
    if not paths:
        _damaged(name, "it lists no patch")
    comments = [line[2:] for line in lines if line[:2] == "# "]
    return Series(folder.name, comments, [path.name for path in paths], changes)


def find_series(target: Path) -> Series:
    """Returns the series for a tree; for Nematus, the one that knows most of its files."""
    if (target / "nmt").is_dir():
        return load_series(HERE / "nmt")
    if not (target / "nematus").is_dir():
        what = "contains neither nmt/ nor nematus/" if target.is_dir() else "is not a folder"
        raise Refused(f"{target} {what}; give the folder of a checkout, which contains one of them")
    candidates = [load_series(file.parent) for file in sorted(HERE.glob("nematus-*/series"))]
    changes = {change.path: change for series in candidates for change in series.changes}
    ids = {path: blob_id(read(target, [change]).text) for path, change in changes.items()}
    known = []
    for series in candidates:
        found = {
            each.path for each in series.changes if ids[each.path] in (each.old_id, each.new_id)
        }
        added = {each.path for each in series.changes if each.old_id == ABSENT}
        known.append(len(found - added))
    if any(known):
        return candidates[known.index(max(known))]
    lines = (HERE / "nematus-common/old").read_text().splitlines()
    old = dict(line.split(" ", 1) for line in lines)
    version = old.get(ids["nematus/nmt.py"], "")
    what = f"Nematus {version}, which uses Theano" if version else "an unknown version of Nematus"
    versions = ", ".join(series.name.partition("-")[2] for series in candidates)
    raise Refused(f"{target} is {what}; check out one of {versions}")


def read(target: Path, changes: list[Change]) -> File:
    """Reads a file of the tree, which may be missing.

    Links inside the tree are followed, so writing keeps them.
    """
    path = target / changes[0].path
    root = Path(os.path.realpath(target))
    place = Path(os.path.realpath(path))
    is_missing = not os.path.lexists(place) and not path.is_symlink()
    # Reverting would leave a link, leading nowhere.
    is_added_link = path.is_symlink() and changes[0].old_id == ABSENT
    if root not in place.parents or is_added_link or not (is_missing or place.is_file()):
        raise Refused(
            f"{changes[0].path} is no regular file, or a link that leads to none in {target}; "
            "replace it"
        )
    if is_missing:
        return File(changes[0].path, place, None, False, 0o666 & ~_umask(), changes)
    data = place.read_bytes()
    text = data.replace(b"\r\n", b"\n")
    if text != data != text.replace(b"\n", b"\r\n"):
        raise Refused(
            f"{changes[0].path} mixes LF and CRLF line endings; restore it, or convert all lines "
            "to one"
        )
    mode = stat.S_IMODE(place.stat().st_mode)
    return File(changes[0].path, place, text, text != data, mode, changes)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read_files(target: Path, series: Series, skip: list[str]) -> list[File]:
    """Reads the files that the patches change.

    A missing one gets CRLF line endings if another file has them.
    """
    paths = list(dict.fromkeys(change.path for change in series.changes))
    if not set(skip) < set(paths):
        raise Refused(
            f"cannot skip {', '.join(skip)}; the series changes {', '.join(paths)}, and --skip may "
            "leave out some of several files, not all"
        )
    files = []
    for path in paths:
        if path not in skip:
            files.append(read(target, [each for each in series.changes if each.path == path]))
    for file in files:
        if file.text is None and file.ids[0] != ABSENT:
            raise Refused(f"{target} has no file {file.path}; restore it")
    any_crlf = any(file.crlf for file in files)
    return [file._replace(crlf=any_crlf if file.text is None else file.crlf) for file in files]


def describe(files: list[File], series: Series) -> str:
    """Returns the name of the series and the state of the tree in words."""
    drifted = [file.path for file in files if file.applied is None]
    if drifted:
        return f"{series.name}: drifted: {', '.join(drifted)}"
    if not any(file.applied for file in files):  # Patches of skipped files alone do not count.
        return f"{series.name}: pristine"
    for k in range(len(series.patches), 0, -1):
        if all(file.applied == _count(file, series.patches[:k]) for file in files):
            return f"{series.name}: applied {k} of {len(series.patches)}"
    return (
        f"{series.name}: interrupted: not all files have the same patches; run apply or revert to "
        "finish"
    )


def _count(file: File, patches: list[str]) -> int:
    """Returns how many of the changes of a file are in these patches."""
    return sum(change.patch in patches for change in file.changes)


def print_status(files: list[File], series: Series) -> None:
    """Prints the comments of the series and whether each patch is applied."""
    order = ["skipped", "applied", "not yet", "unknown"]
    states = dict.fromkeys(series.patches, order[0])
    for file in files:
        for k, change in enumerate(file.changes):
            states[change.patch] = max(states[change.patch], file.state(k), key=order.index)
    for line in series.comments + [f"{states[name]}  {name}" for name in series.patches]:
        print(f"  {line}")


def explain_drift(file: File, undo: bool) -> str:
    """Returns a message with the ids of the file and the lines to insert or remove by hand."""
    states = ["pristine"] + [f"after {change.patch}" for change in file.changes]
    named = zip(file.ids, states)
    known = ", ".join(f"{id_[:12]} ({state})" for id_, state in named if id_ != ABSENT)
    cure = (
        "move the file away"
        if file.ids[0] == ABSENT
        else f"restore it (git checkout -- {file.path})"
    )
    message = f"{file.path} has drifted: its id is {blob_id(file.text)[:12]}, not {known}; {cure}"
    places = []
    for change in file.changes:
        places += [(place, new) for place, (*_, new) in zip(change.places, change.hunks)]
    text = b"\n%s\n" % (file.text or b"")
    by_hand = [
        (place, new) for place, new in places if (b"\n".join([b"", *new, b""]) in text) == undo
    ]
    if places:
        message += f", or use `--skip {file.path}`"
    if by_hand:
        message += f" and {'remove' if undo else 'insert'} these lines by hand:"
    elif places:
        message += f": {'none' if undo else 'all'} of the patches' lines are there"
    for place, new in by_hand:
        message += f"\n  {place}:" + "".join("\n" + f"    {line.decode()}".rstrip() for line in new)
    return message


def rewrite(text: bytes | None, change: Change, undo: bool = False) -> bytes | None:
    """Returns the text after the change or, with `undo`, before it.

    The ids prove that line numbers are exact.
    """
    start, goal = (change.new_id, change.old_id) if undo else (change.old_id, change.new_id)
    if blob_id(text) != start:
        _damaged(
            change.patch,
            f"it starts from {start[:12]}, but the file is {blob_id(text)[:12]} at that point",
        )
    lines = (text or b"").split(b"\n")
    # Line numbers are those of the file before the change: apply from the bottom up, revert from
    # the top down.
    for first, *sides in change.hunks if undo else reversed(change.hunks):
        old, new = sides[::-1] if undo else sides
        lines[first : first + len(old)] = new
    result = None if goal == ABSENT and lines == [b""] else b"\n".join(lines)
    if blob_id(result) != goal:
        _damaged(change.patch, f"its hunks produce {blob_id(result)[:12]} instead of {goal[:12]}")
    return result


def write_files(changed: list[File], files: list[File]) -> None:
    """Writes temporary files first, then renames all of them; removes files last."""
    for folder in {file.location.parent for file in files}:
        for left in folder.glob(f"{_TEMPORARY}????????"):  # by a run that was killed
            left.unlink()
    temporary = {}
    try:
        for file in (file for file in changed if file.text is not None):
            # A new random name never opens what is there already, such as a link.
            with tempfile.NamedTemporaryFile(
                prefix=_TEMPORARY, dir=file.location.parent, delete=False
            ) as stream:
                temporary[file.location] = stream.name
                stream.write(file.text.replace(b"\n", b"\r\n") if file.crlf else file.text)
                stream.flush()
                os.fsync(stream.fileno())
                os.chmod(stream.name, file.mode)
        for location, name in temporary.items():
            os.replace(name, location)
        for file in (file for file in changed if file.text is None):
            file.location.unlink()
    finally:
        for name in filter(os.path.lexists, temporary.values()):
            os.unlink(name)


def change_tree(command: str, files: list[File], series: Series, through: str | None) -> None:
    """Applies or reverts the patches as far as `through`; `check` only prints each."""
    undo = command == "revert"
    goal = 0 if undo else len(series.patches)
    if through:
        wanted = through if through.endswith(".patch") else through + ".patch"
        if wanted not in series.patches:
            raise Refused(f"unknown patch {wanted}; use one of {', '.join(series.patches)}")
        goal = series.patches.index(wanted) + (0 if undo else 1)
    after = []
    report = []
    for file in files:
        k = _count(file, series.patches[:goal])
        changes = file.changes[k : file.applied][::-1] if undo else file.changes[file.applied : k]
        for change in changes:
            before = blob_id(file.text)[:12]
            file = file._replace(text=rewrite(file.text, change, undo))
            ids = f"{before} -> {blob_id(file.text)[:12]}"
            report.append(f"  {_VERBS[command]} {change.patch}: {file.path} {ids}")
        after.append(file)
    changed = [file for file, before in zip(after, files) if file != before]
    for file in changed:  # root may write read-only files, so check the mode too.
        may_write = file.mode & stat.S_IWUSR and os.access(file.location, os.W_OK)
        if file.location.exists() and not may_write:
            raise Refused(f"{file.path} is read-only; make it writable (chmod u+w) and retry")
    if command != "check":
        write_files(changed, files)
        report += [describe(after, series)] if changed else []
    print("\n".join(report or ["  nothing to do"]))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["status", "apply", "revert", "check"])
    parser.add_argument("target", metavar="DIR", type=Path)
    parser.add_argument(
        "--through", metavar="PATCH", help="last patch to apply or revert, as named in `series`"
    )
    parser.add_argument(
        "--skip", metavar="FILE", action="append", default=[], help="leave this file as it is"
    )
    options = parser.parse_args()
    if options.command == "status" and options.through:
        parser.error("status takes no --through: it lists all patches")
    try:
        with contextlib.ExitStack() as stack:
            # Windows; a network file system, or no folder at all
            with contextlib.suppress(ImportError, OSError):
                import fcntl

                folder = os.open(options.target, os.O_RDONLY | os.O_DIRECTORY)
                stack.callback(os.close, folder)  # This ends the lock, which leaves no file.
                fcntl.flock(folder, fcntl.LOCK_EX)
            carry_out(options)
    except KeyboardInterrupt:
        print("apply.py: interrupted; run it again", file=sys.stderr)
        return 130
    except Refused as error:
        print(f"apply.py: nothing was changed: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"apply.py: {error}; fix it and run the same command again", file=sys.stderr)
        return 2
    return 0


def carry_out(options: argparse.Namespace) -> None:
    """Carries out a command, and prints the state of the tree before it."""
    series = find_series(options.target)
    files = read_files(options.target, series, options.skip)
    print(describe(files, series))
    if options.command == "status":
        print_status(files, series)
    drifted = [file for file in files if file.applied is None]
    if drifted:
        raise Refused(
            "\n".join(explain_drift(file, options.command == "revert") for file in drifted)
        )
    if options.command != "status":
        change_tree(options.command, files, series, options.through)


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # Exit silently when the reader of a pipe closes it.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    status = main()
    try:
        sys.stdout.flush()
    except OSError as error:  # such as a full disk
        print(f"apply.py: {error}; `status` says what was done", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # The exit flushes once more.
        status = 2
    sys.exit(status)
