"""Searches, samples, translates and scores."""
