"""Regenerates patches/nematus-*: the module from its source, counts and ids from a clone of
Nematus.

    NEMATUS=/path/to/clone make patches

To change the module, edit patches/nematus-common/rmsnorm.py. To change an inserted line or its
place, edit the patch: in `@@ -N,0 ...`, N is the number of the line to insert after. Then run this
script. It reads the pristine files from the commit that `series` names and updates counts and ids.
Without a clone, it updates only add-module.patch. No text of Nematus gets into a patch.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

import apply

HERE = Path(__file__).resolve().parent
MODULE = "nematus/rmsnorm.py"


def regenerate_module(patch: bytes, source: bytes) -> bytes:
    """Returns the patch that adds the module, with new content for the module."""
    message = patch.partition(b"diff --git ")[0]
    lines = source.splitlines(keepends=True)
    header = (
        f"diff --git a/{MODULE} b/{MODULE}\nnew file mode 100644\n"
        f"index {apply.ABSENT}..{apply.blob_id(source)}\n"
        f"--- /dev/null\n+++ b/{MODULE}\n@@ -0,0 +1,{len(lines)} @@\n"
    )
    return message + header.encode() + b"".join(b"+" + line for line in lines)


def regenerate_insertions(patch: bytes, read_pristine: Callable[[str], bytes]) -> bytes:
    """Returns the patch with counts and ids for its current lines and the pristine files."""
    message, *parts = re.split(rb"^(?=diff --git )", patch, flags=re.M)
    for i, part in enumerate(parts):
        path, mode = (
            re.search(b"^%s(\\S+)$" % what, part, flags=re.M)[1].decode()
            for what in (b"--- a/", b"index .* ")
        )
        pristine = read_pristine(path)
        hunks = [
            (int(place), re.findall(rb"^\+(.*)$", body, flags=re.M))
            for place, body in re.findall(rb"^@@ -(\d+),0 .*\n((?:\+.*\n)+)", part, flags=re.M)
        ]
        lines = pristine.split(b"\n")
        diff = ""
        added = 0
        for place, new in hunks:
            lines[place + added : place + added] = new
            count = f",{len(new)}" if len(new) > 1 else ""
            diff += f"@@ -{place},0 +{place + added + 1}{count} @@\n" + "".join(
                f"+{line.decode()}\n" for line in new
            )
            added += len(new)
        patched = b"\n".join(lines)
        ids = f"{apply.blob_id(pristine)}..{apply.blob_id(patched)}"
        header = f"diff --git a/{path} b/{path}\nindex {ids} {mode}\n--- a/{path}\n+++ b/{path}\n"
        parts[i] = f"{header}{diff}".encode()
    return message + b"".join(parts)


def read_from(clone: str, folder: Path) -> Callable[[str], bytes]:
    """Returns a function that reads a file from the commit that the series in the folder names."""
    commit = re.search(r"commit ([0-9a-f]{40})", (folder / "series").read_text()).group(1)
    git = ["git", "-C", clone, "cat-file", "blob"]
    return lambda path: (
        subprocess.run([*git, f"{commit}:{path}"], check=True, capture_output=True).stdout
    )


def main() -> int:
    """Rewrites the patches that changed, prints each result and returns the exit status."""
    common = HERE / "nematus-common"
    module = common / "add-module.patch"
    regenerated = {
        module: regenerate_module(module.read_bytes(), (common / "rmsnorm.py").read_bytes())
    }
    clone = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        for patch in sorted(HERE.glob("nematus-*/*.patch")) if clone else ():
            if patch != module:
                regenerated[patch] = regenerate_insertions(
                    patch.read_bytes(), read_from(clone, patch.parent)
                )
    except (subprocess.CalledProcessError, OSError) as error:
        said = (
            (getattr(error, "stderr", None) or str(error).encode()).decode(errors="replace").strip()
        )
        print(
            f"regenerate_nematus.py: git cannot read the files of Nematus from {clone} ({said}); "
            "no patch was changed; give a clone of Nematus with all tags",
            file=sys.stderr,
        )
        return 2
    for patch, text in regenerated.items():
        changed = text != patch.read_bytes()
        if changed:
            patch.write_bytes(text)
        print(f"{patch.relative_to(HERE.parent)}: {'regenerated' if changed else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
