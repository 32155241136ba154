"""Training: the loop, one update, the learning rate, validation, progress and interruption."""
