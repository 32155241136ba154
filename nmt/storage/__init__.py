"""What is read from and written to disk: whole files, checkpoints, streams."""
