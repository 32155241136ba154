"""Measurements kept with the logs: norms of untrained models, seconds of an update, bootstrap tests."""
