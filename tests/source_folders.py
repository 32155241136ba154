"""The folders of this project that have Python files."""

from pathlib import Path

GENERATED = {"build", "dist", "runs"}


def source_folders(root: Path) -> list[Path]:
    """Returns the top-level folders with Python files, but `tests`.

    So a new folder is checked like the others.
    """
    folders = [
        path
        for path in root.iterdir()
        if path.is_dir() and path.name[0] != "." and path.name != "tests"
    ]
    return sorted(
        path for path in folders if path.name not in GENERATED and next(path.rglob("*.py"), None)
    )
