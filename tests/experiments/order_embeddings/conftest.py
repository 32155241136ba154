"""Captions in place of Multi30k's.

Each image is of a number of things, which all its captions name.
"""

import gzip

import numpy as np
import pytest

from experiments.order_embeddings.data import SPLITS

SIZES = {"train": 30, "valid": 8, "test": 6}
THINGS = [f"thing{number}" for number in range(12)]


@pytest.fixture
def folder(tmp_path):
    """The fifteen files, those of training compressed."""
    origin = tmp_path / "captions"
    generator = np.random.default_rng(0)
    origin.mkdir()
    for part, name in SPLITS.items():
        things = [generator.choice(THINGS, 3, replace=False) for _ in range(SIZES[part])]
        for number in range(1, 6):
            text = "".join(
                f"A {' and a '.join(generator.permutation(each))}.\n" for each in things
            ).encode()
            path = origin / f"{name}.{number}.en"
            if part == "train":
                path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(text))
            else:
                path.write_bytes(text)
    return origin
