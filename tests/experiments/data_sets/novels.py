"""Novels of random sentences about a few people."""

import gzip

import numpy as np
import pytest

NAMES = ["Emma", "Harriet", "Elton", "Weston", "Bates"]
VERBS = ["saw", "met", "thanked", "blamed"]


def write_novel(path, seed, sentences=60):
    """Each sentence has two names.

    `the Emma` shows that a capital letter is not due to the beginning.
    """
    generator = np.random.default_rng(seed)
    lines = []
    for _ in range(sentences):
        one, other = generator.choice(NAMES, 2, replace=False)
        lines.append(f"On that day the {one} {generator.choice(VERBS)} the {other} again.")
    path.write_bytes(gzip.compress("\r\n".join(lines).encode()))


@pytest.fixture
def novels(tmp_path):
    for number in range(6):
        write_novel(tmp_path / f"Novel_{number}.txt.gz", number)
    return tmp_path
