"""Training: the loop, an update, progress, interruption."""
