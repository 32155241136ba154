"""Trainings of Keras models by kind of normalization and seed; `book.py` keeps the logs of all tasks."""
