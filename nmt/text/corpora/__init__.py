"""Writes English-German parallel corpora:

`train`, `dev` and `test`, each as `.en` and `.de` of raw text.
"""

from collections.abc import Callable
from pathlib import Path

from .demo import write_demo
from .multi30k import write_multi30k

CORPORA: dict[str, Callable[[Path], None]] = {"demo": write_demo, "multi30k": write_multi30k}
