"""What the reports of all tasks share: tables, pictures, and the files they are written to."""
