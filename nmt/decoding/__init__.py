"""Search, translation, scoring and metrics."""
