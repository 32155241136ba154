"""Trains models: the loop, updates, learning rate, validation, progress and interruption."""
