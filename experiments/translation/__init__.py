"""Machine translation with RNNSearch on the patched baseline: Tables 2 and 5, Figures 1 to 4."""
