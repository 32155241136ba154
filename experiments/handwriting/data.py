"""Reads lines of handwriting as offsets of a pen."""

from pathlib import Path

import numpy as np

from nmt.errors import UserError

from ..data_sets.arrays import Parts, read_arrays

LONGEST = 500  # points of a line after its first; lines with fewer points are left out
_PARTS = (0.9, 0.05, 0.05)  # of the forms: for training, validation and test
_SEED = 0  # of the split
_ARRAYS = ("dx", "dy", "pen_up", "lengths", "names")


def read_lines(data: str) -> Parts:
    """Reads an .npz file with the lines of IAM-OnDB, or a folder with one such file.

    The file holds the points of all lines one after the other in `dx`, `dy` and `pen_up`, the
    number of points of each line in `lengths`, and its name in `names`, such as `a01-000u-03`: line
    3 of form `a01-000u`. All lines of a form are in one part. Offsets are divided by their standard
    deviation over the training lines.

    A part has its lines as points `[lines, LONGEST, 3]`: the offset to the right, the offset down,
    and 1 if the pen goes up.

    Args:
        data: Path of the file or folder.

    Raises:
        UserError: No file is given, there is no such file, it lacks an array, or it has too few
            long lines.
    """
    if not data:
        raise UserError(
            "give the file with the lines of IAM-OnDB: DATA=/path/to.npz; its licence must be "
            "asked for"
        )
    arrays = read_arrays(Path(data), _ARRAYS)
    lengths = arrays["lengths"].astype(np.int64)
    counts = [len(arrays[name]) for name in _ARRAYS[:3]]
    if {*counts} != {lengths.sum()} or len(lengths) != len(arrays["names"]):
        raise UserError(
            f"{data}: lengths and names do not fit the "
            f"{' and '.join(map(str, sorted({*counts})))} points"
        )
    points = np.stack([arrays[name].astype(np.float32) for name in _ARRAYS[:3]], -1)
    long = lengths > LONGEST
    starts = (np.cumsum(lengths) - lengths)[long] + 1  # the first offset of a line is always 0
    lines = points[starts[:, None] + np.arange(LONGEST)]  # [lines, LONGEST, 3]
    forms = np.array([str(name).rpartition("-")[0] for name in arrays["names"][long]])
    parts = [lines[np.isin(forms, chosen)] for chosen in _split(np.unique(forms))]
    if not all(map(len, parts)):
        raise UserError(
            f"{data} has {len(np.unique(forms))} forms with lines of more than {LONGEST} points; "
            "20 or more are needed"
        )
    deviation = parts[0][..., :2].std((0, 1), dtype=np.float64).astype(np.float32)
    return Parts(
        *(np.concatenate([part[..., :2] / deviation, part[..., 2:]], -1) for part in parts)
    )


def _split(forms: np.ndarray) -> list[np.ndarray]:
    """Returns the forms of each part, chosen at random. The same forms come every time."""
    shuffled = np.random.default_rng(_SEED).permutation(forms)
    ends = np.cumsum([round(part * len(forms)) for part in _PARTS[1:]])
    valid, test, train = np.split(shuffled, ends)
    return [train, valid, test]
