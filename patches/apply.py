#!/usr/bin/env python3
"""Applies a series of patches to a source tree, or takes them back, exactly.

    python patches/apply.py status DIR                    which patches are applied
    python patches/apply.py apply  DIR [--through PATCH]  apply all, or up to and with PATCH
    python patches/apply.py revert DIR [--through PATCH]  take back all, or down to and with PATCH
    python patches/apply.py check  DIR [--through PATCH]  say what apply would do, write nothing

DIR is the folder that contains `nmt/` or `nematus/`, a checkout or a copy; git is not used.

The `index` line of a patch holds the ids that git gives to a file before and after it. So the id of
a file tells how many patches it has: none (pristine), k of n, or that it is none of the states known
here (drifted) and must not be touched; and the ids of a Nematus tell which series is for it. Every
file is looked at before any is written, and written beside the old one and renamed over it. A file
whose lines all end in CRLF is treated as if they ended in LF, and keeps its CRLF.

The exit status is 0 when all is well or nothing is left to do, and 2 otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import signal
import stat
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple, NoReturn

HERE = Path(__file__).resolve().parent
ABSENT = "0" * 40  # What stands for the id of a file that is not there.

_FILE = re.compile(
    rb"a/(\S+) b/\1\n(?:new file mode [0-7]{6}\n)?index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: [0-7]{6})?\n"
    rb"--- (?:a/\1|/dev/null)\n\+\+\+ b/\1\n"
)
_VERBS = {"apply": "applied", "revert": "reverted", "check": "would apply"}


class Refused(Exception):
    """Why nothing is done: what came, what is allowed and what to do."""


class Hunk(NamedTuple):
    """The `old` lines, which begin at line `place` (from 0), become `new`. A line of context is in both."""

    place: int
    old: list[bytes]
    new: list[bytes]
    added: list[bytes]


class Change(NamedTuple):
    """What one patch does to one file, pinned by the ids of the file before and after."""

    patch: str
    path: str
    old_id: str
    new_id: str
    hunks: list[Hunk]
    places: list[str]  # In words, for somebody who makes the change by hand: one for each hunk, or none.


class Series(NamedTuple):
    """The patches that a file `series` lists, what it says about them, and all that they change, in order."""

    name: str
    about: list[str]
    patches: list[str]
    changes: list[Change]


class File(NamedTuple):
    """A file of the tree: its content with LF endings, if it is there, what else it is on disk, and its changes."""

    path: str
    location: Path
    text: bytes | None
    crlf: bool
    mode: int
    changes: list[Change]

    @property
    def ids(self) -> list[str]:
        return [self.changes[0].old_id] + [change.new_id for change in self.changes]

    @property
    def has_drifted(self) -> bool:
        return blob_id(self.text) not in self.ids

    @property
    def count(self) -> int:
        """How many of its changes it has: by its id or, if it has drifted, by the lines that are in it."""
        if not self.has_drifted:
            return self.ids.index(blob_id(self.text))
        whole = [self._has(self.changes[: k + 1]) for k in range(len(self.changes))]
        return [*whole, False].index(False)

    @property
    def most(self) -> int:
        """Up to which of its changes it has something, which is more than `count` if they were edited."""
        if not self.has_drifted:
            return self.count
        here, before, most = Counter(self.text.split(b"\n")), Counter(), 0
        for k, change in enumerate(self.changes, 1):
            # Every change names a norm in some lines that it adds; others of its lines may be anybody's.
            named = Counter(line for hunk in change.hunks for line in hunk.added if b"norm" in line.lower())
            if any(here[line] > before[line] for line in named):
                most = k
            before += named
        return most

    def _has(self, changes: list[Change]) -> bool:
        """Whether all lines that the changes add are there, wherever, but for empty ones."""
        added = [line for change in changes for hunk in change.hunks for line in hunk.added if line]
        return not Counter(added) - Counter(self.text.split(b"\n"))

    def count_in(self, patches: list[str]) -> int:
        """Returns how many of its changes these patches make."""
        return sum(change.patch in patches for change in self.changes)

    @property
    def beside(self) -> Path:
        """Where its new content is written before it takes its place."""
        return self.location.with_name(f".{self.location.name}.patched")


def blob_id(text: bytes | None) -> str:
    """Returns the id that git gives to a file with this content."""
    return ABSENT if text is None else hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


def _to_lf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n")


def _damaged(name: str, what: str) -> NoReturn:
    raise Refused(f"{name} is damaged: {what}; get the patch again from where this project came from")


def parse_patch(name: str, text: bytes) -> list[Change]:
    """Reads a mail-formatted patch that changes or adds text files. What its hunks are worth, their ids will tell."""
    changes = []
    message, *parts = re.split(rb"^diff --git ", text, flags=re.M)
    for part in parts:
        header, *pairs = re.split(rb"^@@ -(\d+).*\n", part, flags=re.M)
        file = _FILE.fullmatch(header)
        if not file or not pairs:
            _damaged(name, "a file in it has no header with full ids in the index line, or no hunk")
        path, old_id, new_id = (group.decode() for group in file.groups())
        places = re.findall(rf"^Where: {re.escape(path)}: (.+)$", message.decode(), flags=re.M)
        hunks = []
        for line_number, body in zip(pairs[::2], pairs[1::2]):
            old, new, added = (re.findall(rb"^[%s](.*)$" % signs, body, flags=re.M) for signs in (b" -", b" +", b"+"))
            hunks.append(Hunk(int(line_number) - bool(old), old, new, added))  # Without old, it is the line before.
        changes.append(Change(name, path, old_id, new_id, hunks, places))
    return changes or _damaged(name, "it has no diff")


def load_series(folder: Path) -> Series:
    """Reads the patches that `folder/series` lists, in order."""
    series = Series(folder.name, [], [], [])
    try:
        for line in (folder / "series").read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                series.about.append(line[2:])
            else:
                series.patches.append(Path(line).name)
                series.changes.extend(parse_patch(series.patches[-1], _to_lf((folder / line).read_bytes())))
    except (OSError, UnicodeDecodeError) as error:
        _damaged(f"the series {folder.name}", str(error))
    return series if series.patches else _damaged(f"the series {folder.name}", "it lists no patch")


def find_series(target: Path) -> Series:
    """Returns the series for the tree: for a Nematus, the one that knows most of its files."""
    if (target / "nmt").is_dir():
        return load_series(HERE / "nmt")
    if not (target / "nematus").is_dir():
        what = "contains no nmt/ and no nematus/" if target.is_dir() else "is no folder"
        raise Refused(f"{target} {what}; give the folder that contains one of them")
    files = {f"nematus/{file.name}": file for file in (target / "nematus").glob("*.py") if file.is_file()}
    found = {path: blob_id(_to_lf(file.read_bytes())) for path, file in files.items()}
    there = [load_series(file.parent) for file in sorted(HERE.glob("nematus-*/series"))]

    def known(series: Series) -> int:
        changes = [change for change in series.changes if change.old_id != ABSENT]
        return len({change.path for change in changes if found.get(change.path) in (change.old_id, change.new_id)})

    if any(map(known, there)):
        return max(there, key=known)
    old = dict(line.split(" ", 1) for line in (HERE / "nematus-common/old").read_text().splitlines())
    name = f"Nematus {old.get(found.get('nematus/nmt.py'), '')}".strip()
    what = "on Theano" if "nematus/theano_util.py" in found else "of a version that is not known here"
    versions = ", ".join(series.name.partition("-")[2] for series in there)
    raise Refused(f"{target} is {name}, {what}; check out one of {versions}")


def read_file(target: Path, changes: list[Change]) -> File:
    """Reads a file of the tree, following links, so that a link stays one when it is written."""
    path = changes[0].path
    location = (target / path).resolve()
    if changes[0].old_id == ABSENT and not location.exists():
        return File(path, location, None, False, 0o644, changes)
    if not location.is_file():
        raise Refused(f"{path} is no file in {target}; restore it")
    data = location.read_bytes()
    text = _to_lf(data)
    if text != data != text.replace(b"\n", b"\r\n"):
        raise Refused(f"{path} has both LF and CRLF line endings; restore it, or give all its lines the same ending")
    return File(path, location, text, text != data, stat.S_IMODE(location.stat().st_mode), changes)


def read_files(target: Path, series: Series) -> list[File]:
    """Reads what the patches change. A file that they add will end its lines as the others do."""
    paths = dict.fromkeys(change.path for change in series.changes)
    files = [read_file(target, [change for change in series.changes if change.path == path]) for path in paths]
    crlf = any(file.crlf for file in files)
    return [file._replace(crlf=crlf) if file.text is None else file for file in files]


def describe(files: list[File], series: Series) -> str:
    """Says in words which state the tree is in."""
    state = "interrupted: some files have more of the patches than others; apply or revert mends it"
    for k in range(len(series.patches) + 1):
        if all(file.count == file.count_in(series.patches[:k]) for file in files):
            state = f"applied {k} of {len(series.patches)}" if k else "pristine"
    if any(file.count < file.most for file in files):
        state = "drifted: a part of the patches is there"
    return f"{series.name}: {state}"


def explain_drift(file: File, undo: bool) -> str:
    """Says that the id of a file is not known here, and what somebody can do about it."""
    states = ["pristine"] + [f"after {change.patch}" for change in file.changes]
    known = [f"{'absent' if id_ == ABSENT else id_[:12]} ({state})" for id_, state in zip(file.ids, states)]
    said = f"{file.path} has drifted: its id is {blob_id(file.text)[:12]}, expected is one of {', '.join(known)}; "
    if file.ids[0] == ABSENT:
        return said + "move the file away"
    said += f"restore the file, or by hand {'take out' if undo else 'put in'} the lines of the patch"
    for change in file.changes:
        for place, hunk in zip(change.places, change.hunks):
            said += f"\n  {place}:" + "".join("\n" + f"    {line.decode()}".rstrip() for line in hunk.new)
    return said


def rewrite(text: bytes | None, change: Change, undo: bool = False) -> bytes | None:
    """Returns the text after the change, or before it. Places are exact: the ids say what is there."""
    start, goal = (change.new_id, change.old_id) if undo else (change.old_id, change.new_id)
    if blob_id(text) != start:
        _damaged(change.patch, f"it starts from {start[:12]}, but the file is {blob_id(text)[:12]} then")
    lines = (text or b"").split(b"\n")
    # In an order in which no place has moved yet, or each is back already.
    for hunk in change.hunks if undo else reversed(change.hunks):
        old, new = (hunk.new, hunk.old) if undo else (hunk.old, hunk.new)
        lines[hunk.place : hunk.place + len(old)] = new
    result = None if goal == ABSENT and lines == [b""] else b"\n".join(lines)
    if blob_id(result) != goal:
        _damaged(change.patch, f"its hunks give {blob_id(result)[:12]}, it says {goal[:12]}")
    return result


def write_files(changed: list[File], files: list[File]) -> None:
    """Writes each file beside the old one, with its mode, and renames or removes when all are written."""
    written = [file for file in changed if file.text is not None]
    try:
        for file in written:
            with open(file.beside, "wb") as stream:
                stream.write(file.text.replace(b"\n", b"\r\n") if file.crlf else file.text)
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(file.beside, file.mode)
        for file in written:
            os.replace(file.beside, file.location)
        for file in (file for file in changed if file.text is None):
            file.location.unlink()
    finally:
        for file in files:
            if file.beside.exists():  # This run's, if it failed, or that of one that was cut off.
                file.beside.unlink()


def tell_status(files: list[File], series: Series) -> None:
    """Prints which version it is and which patches it has; raises when files have drifted."""
    missing = {change.patch for file in files for change in file.changes[file.count :]}
    for line in series.about:
        print(f"  {line}")
    for name in series.patches:
        print(f"  {'not yet' if name in missing else 'applied'}  {name}")
    drifted = [explain_drift(file, undo=not missing) for file in files if file.has_drifted]
    if drifted:
        raise Refused("\n".join(drifted))


def change_tree(command: str, files: list[File], series: Series, through: str | None) -> None:
    """Makes the files have all patches, none, or those up to the one that is named, and says how; or changes none."""
    undo = command == "revert"
    goal = 0 if undo else len(series.patches)
    if through:
        wanted = through if through.endswith(".patch") else through + ".patch"
        if wanted not in series.patches:
            raise Refused(f"there is no {wanted} here; name one of {', '.join(series.patches)}")
        goal = series.patches.index(wanted) + (0 if undo else 1)

    after, report, by_hand = [], [], []
    for file in files:
        k = file.count_in(series.patches[:goal])
        steps = file.changes[k : file.most][::-1] if undo else file.changes[file.count : k]
        if file.has_drifted:
            if steps or file.ids[k] == ABSENT:
                by_hand.append(explain_drift(file, undo))
            steps = []
        for change in steps:
            before, file = file, file._replace(text=rewrite(file.text, change, undo))
            ids = f"{blob_id(before.text)[:12]} -> {blob_id(file.text)[:12]}"
            report.append(f"  {_VERBS[command]} {change.patch}: {file.path} {ids}")
        after.append(file)
    if by_hand:
        raise Refused("\n".join(by_hand))
    changed = [file for file, before in zip(after, files) if file != before]
    for file in changed:  # The mode counts, because an administrator may write all.
        if file.location.exists() and not (file.mode & stat.S_IWUSR and os.access(file.location, os.W_OK)):
            raise Refused(f"{file.path} is read-only; make it writable (chmod u+w) and retry")
    if command != "check":
        write_files(changed, files)
    print("\n".join(report or ["  nothing to do"]))
    if changed and command != "check":
        print(describe(after, series))


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
        series = find_series(options.target)
        files = read_files(options.target, series)
        print(describe(files, series))
        if options.command == "status":
            tell_status(files, series)
        else:
            change_tree(options.command, files, series, options.through)
    except Refused as error:
        print(f"apply.py: nothing was changed: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"apply.py: {error}; mend that and run the same command again", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # End in silence, as other programs do, when the reader of a pipe has gone.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
