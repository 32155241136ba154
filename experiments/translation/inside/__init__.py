"""Programs that run inside the patched copy of the baseline."""
