"""Runs the commands of README.md and docs/tutorial.md, and writes their outputs into the pages.

    python docs/run_tutorial.py                     # both
    python docs/run_tutorial.py docs/tutorial.md    # one

Each page has a copy of the project of its own. Blocks marked `sh` are run. A block marked `text`
after one holds its output. Blocks marked `bash` are not run.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/tutorial.md")
BLOCK = re.compile(r"```sh\n(.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)

HIDDEN = re.compile(r"WARNING:|[IWE]\d{4} ")


def run(text: str, folder: Path) -> str:
    """Runs the commands of a page in order, in a copy of the project in `folder`.

    Returns:
        The page with the new outputs. A block without a `text` block after it gets none.

    Raises:
        RuntimeError: A command failed.
    """
    for name in ("nmt", "patches", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment["TQDM_DISABLE"] = (
        "1"  # A bar would be drawn into the lines of a command that prints while it runs.
    )

    def replace(block: re.Match) -> str:
        command = ["bash", "-e", "-c", block[1]]
        ran = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if ran.returncode:
            raise RuntimeError(f"{block[1]}\n{ran.stdout}")
        return f"```sh\n{block[1]}```\n" + (
            f"\n```text\n{visible(ran.stdout)}```\n" if block[2] is not None else ""
        )

    return BLOCK.sub(replace, text)


def visible(output: str) -> str:
    """Returns the output without TensorFlow's log."""
    return "".join(
        f"{line}\n" for line in output.splitlines() if line.strip() and not HIDDEN.match(line)
    )


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:] or [ROOT / name for name in PAGES]):
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(run(page.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
