"""Table 1: what leaves a normalized linear map as it is."""
