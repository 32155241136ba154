"""What is measured besides the trainings: seconds of an update, and bootstrap tests."""
