"""Table 1: the transformations that a normalized linear map is invariant to."""
