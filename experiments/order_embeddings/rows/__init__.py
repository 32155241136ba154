"""The kinds of both papers, inside `RMSNormGRU`.

A file added here is trained and reported with the rest.
"""

from ...trials.kinds import CELL_ROWS

ROWS = list(CELL_ROWS)
