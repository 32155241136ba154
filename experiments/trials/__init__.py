"""Trainings of Keras models by kind of normalization and seed, shared by all tasks but translation."""
