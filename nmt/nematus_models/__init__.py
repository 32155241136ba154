"""Checkpoints of Nematus: import and export."""
