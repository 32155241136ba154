"""Trainings of Keras models, by kind of normalization and seed: what all tasks but translation share."""
