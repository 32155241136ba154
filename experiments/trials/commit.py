"""The commit of a checkout."""

import subprocess
from pathlib import Path


def read_commit(root: Path, *which: str) -> str:
    """Returns the commit, with a plus if a file has changed, or `unknown`.

    Args:
        root: The checkout.
        *which: Arguments of `git status` that say which files count.
    """
    git = ["git", "-C", str(root)]
    head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", *which], capture_output=True).stdout
    return f"{head or 'unknown'}{'+' if changed else ''}"
