"""Regenerates patches/nmt for the current nmt/normalization.py; `make patches` runs it.

Applies each patch to the current file, with a three-way merge if git has the file that the patches
were made for, and exports it again with its message, author and date. If a patch does not apply,
nothing is written. To change a message, edit it in the patch.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import apply

ROOT = Path(__file__).resolve().parent.parent
SERIES = ROOT / "patches" / "nmt"
PATH = "nmt/normalization.py"
EXPORT = ["--no-numbered", "--zero-commit", "--full-index", "--no-signature", "--no-stat"]


def run_git(folder: str, *arguments: str, text: bytes = b"") -> bytes:
    """Runs git in a folder, without the user's settings, and returns its output.

    Raises:
        subprocess.CalledProcessError: git failed.
    """
    name = "The rmsnorm-tf authors"
    email = "authors@rmsnorm-tf.invalid"
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": folder,
        "LC_ALL": "C",
        "XDG_CONFIG_HOME": folder,
    }
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, input=text, check=True, capture_output=True
    ).stdout


def known_states(changes: list[apply.Change]) -> list[bytes]:
    """Returns the file before and after each patch, as far as it can be restored.

    The first comes from the repository of the project, if it is there; each patch produces the
    next.
    """
    command = ["git", "cat-file", "blob", changes[0].old_id]
    found = subprocess.run(command, cwd=ROOT, capture_output=True)
    states = [found.stdout] if found.returncode == 0 else []
    try:
        for change in changes if states else []:
            states.append(apply.rewrite(states[-1], change))
    except apply.Refused:
        pass  # This patch was edited, so the patches after it get no three-way merge.
    return states


def export_series(text: bytes, series: apply.Series) -> dict[str, bytes]:
    """Applies the patches to the content of the file and returns the new patches by name."""
    exported = {}
    with tempfile.TemporaryDirectory() as folder:
        git = functools.partial(run_git, folder)
        git("init", "--quiet")
        for state in known_states(series.changes):
            git("hash-object", "-w", "--stdin", text=state)
        file = Path(folder, PATH)
        file.parent.mkdir()
        file.write_bytes(text)
        git("add", PATH)
        git("commit", "--quiet", "--message", "The file without patches")
        for name in series.patches:
            before = git("rev-parse", "HEAD").decode().strip()
            try:
                git("am", "--3way", str(SERIES / name))
            except subprocess.CalledProcessError as error:
                said = (error.stdout + error.stderr).decode(errors="replace").splitlines()
                reasons = [line for line in said if line.startswith(("CONFLICT", "error:"))] or said
                raise apply.Refused(
                    f"{name} does not apply to the current {PATH} ({reasons[0]}); no patch was "
                    "changed; edit its hunks to fit the file and run this again"
                ) from None
            exported[name] = git("format-patch", "--stdout", *EXPORT, f"{before}..")
            if not exported[name]:
                raise apply.Refused(
                    f"{name} changes nothing, because {PATH} already has its lines; "
                    "no patch was changed; remove it from patches/nmt/series"
                )
    return exported


def main() -> int:
    """Rewrites the patches that changed, prints each result and returns the exit status."""
    try:
        series = apply.load_series(SERIES)
        text = (ROOT / PATH).read_bytes()
        if apply.blob_id(text) in [change.new_id for change in series.changes]:
            raise apply.Refused(
                f"{PATH} has patches applied, but must be pristine; run "
                "`python patches/apply.py revert .` first"
            )
        exported = export_series(text, series)
    except apply.Refused as error:
        print(f"regenerate.py: {error}", file=sys.stderr)
        return 2
    except FileNotFoundError as error:
        print(
            f"regenerate.py: {error}; install git and run this in a complete copy of the project",
            file=sys.stderr,
        )
        return 2
    for name, content in exported.items():
        changed = content != (SERIES / name).read_bytes()
        if changed:
            (SERIES / name).write_bytes(content)
        print(f"patches/nmt/{name}: {'regenerated' if changed else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
