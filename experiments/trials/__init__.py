"""Trainings of Keras models by kind of normalization and seed; the logs are those of all tasks."""
