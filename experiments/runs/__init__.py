"""Trainings of Keras models by kind of normalization and seed.

`store.py` keeps the logs of all tasks.
"""
