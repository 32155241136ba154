"""The rows, one file for each table or figure. A row in a file added here is trained and reported with the rest."""
