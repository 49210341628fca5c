"""What the larger commands of the command line do."""
