"""The kinds of normalization that are compared. A file added here is trained and reported with the rest."""
