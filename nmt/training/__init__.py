"""Training: the loop, one update, the learning rate, progress and interruption."""
