"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

PATH = click.Path(path_type=Path)
PROGRAM = click.argument("program", type=PATH)
TRUST = click.option("--trust", is_flag=True, help="Run code in a .pt2 or SavedModel; only if you trust its origin.")
DEVICE = click.option("--device", default="cpu", show_default=True, help="The device to compile for.")
THREADS = click.option(
    "--threads", type=click.IntRange(min=1), help="Threads of a run; by default all of the machine's."
)
RANDOM = click.option(
    "--random", "seed", is_flag=False, flag_value=0, type=int, help="Random inputs from a seed (default 0)."
)
SHAPES = click.option(
    "--shape", "shapes", multiple=True, help="Fix the sizes of an argument that are open: images=1x3x224x224."
)
INPUTS = click.option(
    "--input", "inputs", type=PATH, multiple=True, help="An input as a .npy file; one for each, in order."
)
