"""The rows of the table, one module for each family."""
