"""What Trivium is measured by: rows (programs and those who can run them), one way to measure, one table."""
