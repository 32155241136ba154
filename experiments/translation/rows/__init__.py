"""What is trained, one file for each table or figure. A file added here is trained and reported with the rest."""
