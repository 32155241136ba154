"""The kinds of normalization of both papers. The options of a row are arguments of `RMSNormGRU`."""

from ...trials.cell_rows import CELL_ROWS

ROWS = list(CELL_ROWS)
