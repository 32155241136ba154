"""Files, checkpoints and streams."""
