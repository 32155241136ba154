"""Text files, plain or compressed by gzip."""

import gzip
import zlib
from pathlib import Path

from nmt.errors import UserError


def find_text(folder: Path, name: str, needs: str) -> Path:
    """Returns the path of a file of a folder, which may also end in .gz.

    Args:
        folder: The folder.
        name: Name of the file, without .gz.
        needs: What the folder should hold, for the message.

    Raises:
        UserError: There is no such file.
    """
    path = next((path for end in ("", ".gz") if (path := folder / f"{name}{end}").is_file()), None)
    if path is None:
        raise UserError(f"{folder} lacks {name}; it needs {needs}, plain or .gz")
    return path


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Returns the content of a file.

    Raises:
        UserError: The file cannot be read, unpacked or decoded.
    """
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode(encoding)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
