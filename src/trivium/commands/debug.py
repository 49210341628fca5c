"""`trivium debug`: finds what is wrong with a program."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path

import click

import trivium
from trivium.commands.options import DEVICE, PATH, PROGRAM
from trivium.ir.errors import Error
from trivium.ir.func import Module


@click.group()
def debug() -> None:
    """Finds the op that is wrong, or the smallest program that fails."""


@debug.command()
@click.argument("target")
@click.option("--tolerance", type=click.FloatRange(min=0), help="Relative to the greatest element of a result.")
@DEVICE
def accuracy(target: str, tolerance: float | None, device: str) -> None:
    """Names the first op whose result is wrong.

    TARGET is a program (.mlir, .mlirbc, .onnx, ...), which runs on random arguments, or MODEL.PY:FUNCTION: the file is
    executed, and its FUNCTION, without arguments, returns a PyTorch module, a function or Keras model of TensorFlow,
    or a JAX function, and then its arguments.
    """
    from trivium.debug import compare

    program, arguments = _target(target)
    found = compare(program, *arguments, device=device, tolerance=tolerance)
    if found is not None:
        click.echo(str(found))
        raise click.exceptions.Exit(1)
    click.echo("The results are right, within the tolerance.")


@debug.command()
@PROGRAM
@click.option("-o", "--output", type=PATH, required=True, help="The file to write (.mlir).")
@click.option("--seconds", type=click.FloatRange(0.1, 1e6), default=90.0, show_default=True, help="The time to search.")
@DEVICE
def minify(program: Path, output: Path, seconds: float, device: str) -> None:
    """Writes the smallest program found that fails as PROGRAM does on random arguments: with wrong results, an error or
    a crash. `trivium debug accuracy` on the new file shows the failure."""
    from trivium.debug import minify as minified

    smallest, how = minified(trivium.load(program), device=device, seconds=seconds)
    smallest.save(output)
    click.echo(f"{output}: {len(list(smallest.main.body.block)) - 1} ops, {how}")


def _target(target: str) -> tuple[Module | Callable[..., object], Sequence[object]]:
    """Returns the program that a target names, and its arguments."""
    file, _, name = target.rpartition(":")
    if not file.endswith(".py"):
        from trivium.debug import arguments_of

        module: Module = trivium.load(target)
        return module, arguments_of(module.main)
    if not Path(file).is_file():
        raise Error(f"{file} does not exist")
    function = runpy.run_path(file).get(name)
    if not callable(function):
        raise Error(f"{file} has no function {name!r}")
    returned = function()
    if not isinstance(returned, tuple) or not returned:
        raise Error(f"{name} returned a {type(returned).__name__}, expected a tuple: the model, then its arguments")
    program, *arguments = returned
    if not callable(program) and not isinstance(program, Module):
        raise Error(f"{name} returned a {type(program).__name__} first, expected a model")
    return program, arguments
