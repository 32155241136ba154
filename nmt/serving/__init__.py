"""Models in production, where nothing of this project is installed."""
