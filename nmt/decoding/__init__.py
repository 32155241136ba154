"""Search, translation and scoring."""
