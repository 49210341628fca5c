"""`python -m trivium`: the command line."""

from trivium.cli import main

main(prog_name="trivium")
