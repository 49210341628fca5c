"""The implementations of the larger commands of the command line."""
