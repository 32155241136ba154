"""The kinds of both papers, inside `RMSNormGRU`.

A file added here is trained and reported with the rest.
"""

from ...runs.kinds import CELL_CONDITIONS

CONDITIONS = list(CELL_CONDITIONS)
