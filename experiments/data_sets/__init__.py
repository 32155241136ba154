"""Data that several tasks read."""
