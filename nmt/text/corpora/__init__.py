"""English-German parallel corpora.

Each function writes `train`, `dev` and `test` to a directory: `.en` and `.de` files of raw text, one sentence a line.
"""

from collections.abc import Callable
from pathlib import Path

from .demo import write_demo
from .multi30k import write_multi30k

CORPORA: dict[str, Callable[[Path], None]] = {"demo": write_demo, "multi30k": write_multi30k}
