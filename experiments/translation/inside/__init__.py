"""What runs inside the patched copy of the baseline."""
