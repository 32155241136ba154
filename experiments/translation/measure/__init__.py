"""Measurements after the trainings: seconds of an update, and bootstrap tests."""
