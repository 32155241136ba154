#!/usr/bin/env python3
"""Applies a series of patches to a source tree and reverts them, without git.

    python patches/apply.py status DIR                    list the patches, and which are applied
    python patches/apply.py apply  DIR [--through PATCH]  apply all patches, or those up to and including PATCH
    python patches/apply.py revert DIR [--through PATCH]  revert all patches, or those down to and including PATCH
    python patches/apply.py check  DIR [--through PATCH]  print what apply would do, write nothing

DIR is the folder that contains `nmt/` or `nematus/`: a checkout or a copy.

The `index` line of a patch holds the git blob id of each file before and after the patch. A file is
pristine, patched or, if its id is unknown, drifted. The ids also tell the version of Nematus. If any file
has drifted, nothing is changed. For a file of Nematus, the message shows the lines to insert by hand;
`--skip FILE` then patches the other files. All files are checked before the first is written. CRLF line
endings are kept, and so are links to files inside DIR; other links are refused. One run waits for another,
but not on Windows or a network file system that locks no folders: do not start two at once there.

The exit status is 0 on success, even if there is nothing to do, and 2 on any error.
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
from typing import Iterator, NamedTuple, NoReturn

HERE = Path(__file__).resolve().parent
ABSENT = "0" * 40  # The id that git gives to a missing file.

_FILE = re.compile(
    rb"a/(\S+) b/\1\n(?:new file mode [0-7]{6}\n)?index ([0-9a-f]{40})\.\.([0-9a-f]{40})(?: [0-7]{6})?\n"
    rb"--- (?:a/\1|/dev/null)\n\+\+\+ b/\1\n"
)
_TEMPORARY = ".patched-"  # and 8 random characters
_VERBS = {"apply": "applied", "revert": "reverted", "check": "would apply"}


class Refused(Exception):
    """The command cannot be carried out; the message says why and what to do."""


class Hunk(NamedTuple):
    """Replaces the lines `old`, which begin at index `start`, with `new`. Lines of context are in both."""

    start: int
    old: list[bytes]
    new: list[bytes]


class Change(NamedTuple):
    """The hunks of one patch in one file, with the blob ids of the file before and after."""

    patch: str
    path: str
    old_id: str
    new_id: str
    hunks: list[Hunk]
    places: list[str]  # The `Where:` fields of the patch: one for each hunk, or none.


class Series(NamedTuple):
    """A file `series`: its comments, its patches in order, and all changes of the patches."""

    name: str
    comments: list[str]
    patches: list[str]
    changes: list[Change]


class File(NamedTuple):
    """A file of the tree, its content with LF line endings (None if it is missing), and its changes in order."""

    path: str
    location: Path
    text: bytes | None
    crlf: bool
    mode: int
    changes: list[Change]

    @property
    def ids(self) -> list[str]:
        """Blob ids of all known states: before the first change, and after each."""
        return [self.changes[0].old_id] + [change.new_id for change in self.changes]

    @property
    def applied(self) -> int | None:
        """How many of the changes are applied; None if the file has drifted."""
        current = blob_id(self.text)
        return self.ids.index(current) if current in self.ids else None

    def count_in(self, patches: list[str]) -> int:
        """Returns how many of the changes belong to these patches."""
        return sum(change.patch in patches for change in self.changes)


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Waits for other runs on the folder and locks it, if it can be locked. The lock leaves no file."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):  # Windows; a network file system, or no folder at all
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def blob_id(text: bytes | None) -> str:
    """Returns the id that git gives to a file with this content."""
    return ABSENT if text is None else hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest()


def _damaged(name: str, what: str) -> NoReturn:
    raise Refused(f"{name} is damaged: {what}; get a new copy of this project")


def parse_patch(name: str, text: bytes) -> list[Change]:
    """Parses a mail-formatted patch. The blob ids, compared when it is used, detect damaged hunks."""
    changes = []
    message, *parts = re.split(rb"^diff --git ", text.replace(b"\r\n", b"\n"), flags=re.M)
    for part in parts:
        header, *pairs = re.split(rb"^@@ -(\d+).*\n", part, flags=re.M)
        file = _FILE.fullmatch(header)
        if not file or not pairs:
            _damaged(name, "one of its files has no hunk, or no header with full ids in the index line")
        path, old_id, new_id = (group.decode() for group in file.groups())
        places = re.findall(rf"^Where: {re.escape(path)}: (.+)$", message.decode(), flags=re.M)
        hunks = []
        for line_number, body in zip(pairs[::2], pairs[1::2]):
            old, new = (re.findall(rb"^[%s](.*)$" % signs, body, flags=re.M) for signs in (b" -", b" +"))
            hunks.append(Hunk(int(line_number) - bool(old), old, new))  # Without old, insert after that line.
        changes.append(Change(name, path, old_id, new_id, hunks, places))
    return changes or _damaged(name, "it contains no diff")


def load_series(folder: Path) -> Series:
    """Reads the patches that `folder/series` lists."""
    series = Series(folder.name, [], [], [])
    try:
        for line in (folder / "series").read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                series.comments.append(line[2:])
            else:
                series.patches.append(Path(line).name)
                series.changes.extend(parse_patch(series.patches[-1], (folder / line).read_bytes()))
    except (OSError, UnicodeDecodeError) as error:
        _damaged(f"the series {folder.name}", str(error))
    return series if series.patches else _damaged(f"the series {folder.name}", "it lists no patch")


def find_series(target: Path) -> Series:
    """Returns the series for a tree; for Nematus, the one that knows most of its files."""
    if (target / "nmt").is_dir():
        return load_series(HERE / "nmt")
    if not (target / "nematus").is_dir():
        what = "contains neither nmt/ nor nematus/" if target.is_dir() else "is not a folder"
        raise Refused(f"{target} {what}; give the folder that contains one of them")
    candidates = [load_series(file.parent) for file in sorted(HERE.glob("nematus-*/series"))]
    paths = {change.path: change for series in candidates for change in series.changes}
    files = [(path, locate(target, change)) for path, change in paths.items()]
    ids = {path: blob_id(file.read_bytes().replace(b"\r\n", b"\n")) for path, file in files if file.exists()}

    def known(series: Series) -> int:
        changes = [change for change in series.changes if change.old_id != ABSENT]
        return len({change.path for change in changes if ids.get(change.path) in (change.old_id, change.new_id)})

    if any(map(known, candidates)):
        return max(candidates, key=known)
    old = dict(line.split(" ", 1) for line in (HERE / "nematus-common/old").read_text().splitlines())
    version = old.get(ids.get("nematus/nmt.py"))
    what = f"Nematus {version}, which uses Theano" if version else "an unknown version of Nematus"
    versions = ", ".join(series.name.partition("-")[2] for series in candidates)
    raise Refused(f"{target} is {what}; check out one of {versions}")


def locate(target: Path, change: Change) -> Path:
    """Returns the place of a file, which may be missing. Links inside the tree are followed, so writing keeps them."""
    path, root = target / change.path, Path(os.path.realpath(target))
    place = Path(os.path.realpath(path))
    is_missing = not os.path.lexists(place) and not path.is_symlink()
    is_added_link = path.is_symlink() and change.old_id == ABSENT  # Reverting would leave it, leading nowhere.
    if root not in place.parents or is_added_link or not (is_missing or place.is_file()):
        raise Refused(f"{change.path} is no regular file, or a link that leads to none in {target}; replace it")
    return place


def read_file(target: Path, changes: list[Change]) -> File:
    """Reads a file of the tree."""
    path, location = changes[0].path, locate(target, changes[0])
    if not location.exists():
        if changes[0].old_id != ABSENT:
            raise Refused(f"{target} has no file {path}; restore it")
        return File(path, location, None, False, 0o644, changes)
    data = location.read_bytes()
    text = data.replace(b"\r\n", b"\n")
    if text != data != text.replace(b"\n", b"\r\n"):
        raise Refused(f"{path} mixes LF and CRLF line endings; restore it, or convert all lines to one of them")
    return File(path, location, text, text != data, stat.S_IMODE(location.stat().st_mode), changes)


def read_files(target: Path, series: Series, skip: list[str]) -> list[File]:
    """Reads the files that the patches change. A missing one gets CRLF line endings if another file has them."""
    paths = list(dict.fromkeys(change.path for change in series.changes))
    if not set(skip) < set(paths):
        raise Refused(f"cannot skip {', '.join(skip)}; --skip takes some, but not all, of {', '.join(paths)}")
    changes = {path: [change for change in series.changes if change.path == path] for path in paths if path not in skip}
    files = [read_file(target, changes[path]) for path in changes]
    crlf = any(file.crlf for file in files)
    return [file._replace(crlf=crlf) if file.text is None else file for file in files]


def describe(files: list[File], series: Series) -> str:
    """Returns the name of the series and the state of the tree in words."""
    drifted = [file.path for file in files if file.applied is None]
    if drifted:
        return f"{series.name}: drifted: {', '.join(drifted)}"
    if not any(file.applied for file in files):  # patches that change only skipped files are in no other state
        return f"{series.name}: pristine"
    for k in range(len(series.patches), 0, -1):
        if all(file.applied == file.count_in(series.patches[:k]) for file in files):
            return f"{series.name}: applied {k} of {len(series.patches)}"
    return f"{series.name}: interrupted: not all files have the same patches; run apply or revert to finish"


def print_status(files: list[File], series: Series) -> None:
    """Prints the comments of the series and whether each patch is applied."""
    unknown = {change.patch for file in files if file.applied is None for change in file.changes}
    missing = {change.patch for file in files for change in file.changes[file.applied or 0 :]}
    known = {change.patch for file in files for change in file.changes}
    for line in series.comments:
        print(f"  {line}")
    for name in series.patches:
        state = "unknown" if name in unknown else "not yet" if name in missing else "applied"
        print(f"  {state if name in known else 'skipped'}  {name}")


def explain_drift(file: File, undo: bool) -> str:
    """Returns a message with the id of the file, the known ids, and the lines to insert or remove by hand."""
    states = ["pristine"] + [f"after {change.patch}" for change in file.changes]
    known = ", ".join(f"{id_[:12]} ({state})" for id_, state in zip(file.ids, states) if id_ != ABSENT)
    message = f"{file.path} has drifted: its id is {blob_id(file.text)[:12]}, not {known}; "
    if file.ids[0] == ABSENT:
        return message + "move the file away"
    message += "restore the file"
    hunks = [pair for change in file.changes for pair in zip(change.places, change.hunks)]
    text = b"\n%s\n" % (file.text or b"")
    by_hand = [(place, hunk) for place, hunk in hunks if (b"\n".join([b"", *hunk.new, b""]) in text) == undo]
    if by_hand:
        message += f", or use `--skip {file.path}` and {'remove' if undo else 'insert'} these lines by hand:"
    elif hunks:
        message += f", or use `--skip {file.path}`: {'none' if undo else 'all'} of the patches' lines are there"
    for place, hunk in by_hand:
        message += f"\n  {place}:" + "".join("\n" + f"    {line.decode()}".rstrip() for line in hunk.new)
    return message


def rewrite(text: bytes | None, change: Change, undo: bool = False) -> bytes | None:
    """Returns the text after the change or, with `undo`, before it. The ids prove that line numbers are exact."""
    start, goal = (change.new_id, change.old_id) if undo else (change.old_id, change.new_id)
    if blob_id(text) != start:
        _damaged(change.patch, f"it starts from {start[:12]}, but the file is {blob_id(text)[:12]} at that point")
    lines = (text or b"").split(b"\n")
    # Line numbers are those of the file before the change: apply from the bottom up, revert from the top down.
    for hunk in change.hunks if undo else reversed(change.hunks):
        old, new = (hunk.new, hunk.old) if undo else (hunk.old, hunk.new)
        lines[hunk.start : hunk.start + len(old)] = new
    result = None if goal == ABSENT and lines == [b""] else b"\n".join(lines)
    if blob_id(result) != goal:
        _damaged(change.patch, f"its hunks produce {blob_id(result)[:12]} instead of {goal[:12]}")
    return result


def write_files(changed: list[File], files: list[File]) -> None:
    """Writes temporary files first, then renames all of them; removes files last."""
    temporary = {}
    for folder in {file.location.parent for file in files}:
        for path in folder.glob(f"{_TEMPORARY}????????"):  # from a run that was killed
            path.unlink()
    try:
        for file in changed:
            if file.text is not None:  # mkstemp never opens what is there already, such as a link.
                descriptor, temporary[file.location] = tempfile.mkstemp(prefix=_TEMPORARY, dir=file.location.parent)
                with open(descriptor, "wb") as stream:
                    stream.write(file.text.replace(b"\n", b"\r\n") if file.crlf else file.text)
                    stream.flush()
                    os.fsync(stream.fileno())
                    os.chmod(temporary[file.location], file.mode)
        for location, name in temporary.items():
            os.replace(name, location)
        for file in changed:
            if file.text is None:
                file.location.unlink()
    finally:
        for name in temporary.values():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def change_tree(command: str, files: list[File], series: Series, through: str | None) -> None:
    """Applies or reverts the patches, all or as far as `through`, and prints each change; `check` writes nothing."""
    undo = command == "revert"
    goal = 0 if undo else len(series.patches)
    if through:
        wanted = through if through.endswith(".patch") else through + ".patch"
        if wanted not in series.patches:
            raise Refused(f"unknown patch {wanted}; use one of {', '.join(series.patches)}")
        goal = series.patches.index(wanted) + (0 if undo else 1)

    after, report = [], []
    for file in files:
        k = file.count_in(series.patches[:goal])
        for change in file.changes[k : file.applied][::-1] if undo else file.changes[file.applied : k]:
            before, file = file, file._replace(text=rewrite(file.text, change, undo))
            ids = f"{blob_id(before.text)[:12]} -> {blob_id(file.text)[:12]}"
            report.append(f"  {_VERBS[command]} {change.patch}: {file.path} {ids}")
        after.append(file)
    changed = [file for file, before in zip(after, files) if file != before]
    for file in changed:  # root may write read-only files, so check the mode too.
        if file.location.exists() and not (file.mode & stat.S_IWUSR and os.access(file.location, os.W_OK)):
            raise Refused(f"{file.path} is read-only; make it writable (chmod u+w) and retry")
    if command != "check":
        write_files(changed, files)
    print("\n".join(report or ["  nothing to do"]))
    if changed and command != "check":
        print(describe(after, series))


def main() -> int:
    """Runs the command line and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["status", "apply", "revert", "check"])
    parser.add_argument("target", metavar="DIR", type=Path)
    parser.add_argument("--through", metavar="PATCH", help="last patch to apply or revert, as named in `series`")
    parser.add_argument("--skip", metavar="FILE", action="append", default=[], help="leave this file as it is")
    options = parser.parse_args()
    if options.command == "status" and options.through:
        parser.error("status takes no --through: it lists all patches")
    undo = options.command == "revert"
    try:
        with exclusive(options.target):
            series = find_series(options.target)
            files = read_files(options.target, series, options.skip)
            print(describe(files, series))
            if options.command == "status":
                print_status(files, series)
            if any(file.applied is None for file in files):
                raise Refused("\n".join(explain_drift(file, undo) for file in files if file.applied is None))
            if options.command != "status":
                change_tree(options.command, files, series, options.through)
    except (Refused, OSError) as error:
        is_ours = isinstance(error, Refused)
        said = f"nothing was changed: {error}" if is_ours else f"{error}; fix this and run the same command again"
        print(f"apply.py: {said}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # Exit silently when the reader of a pipe closes it.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
