"""The rows of the table, a module for each family."""
