"""`trivium debug`: finds what is wrong with a program."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trivium
from trivium.commands.inputs import inputs_of_function
from trivium.commands.options import DEVICE, INPUTS, PATH, PROGRAM, TRUST
from trivium.ir.errors import Error
from trivium.ir.func import Module

if TYPE_CHECKING:
    import onnx


@click.group()
def debug() -> None:
    """Finds the op that is wrong, or the smallest program that fails."""


@debug.command()
@click.argument("target")
@INPUTS
@click.option("--tolerance", type=click.FloatRange(min=0), help="Relative to the greatest element of a result.")
@TRUST
@DEVICE
def accuracy(target: str, inputs: Sequence[Path], tolerance: float | None, trust: bool, device: str) -> None:
    """Names the first op whose result is wrong.

    TARGET is a program (.mlir, .mlirbc, ...) or an ONNX model, which runs on the inputs given or on random ones, or
    MODEL.PY:FUNCTION: the file is executed, and its FUNCTION, without arguments, returns a PyTorch module, a function
    or Keras model of TensorFlow, or a JAX function, and then its arguments.
    """
    from trivium.debug import compare

    program, arguments = _target(target, inputs, trust)
    found = compare(program, *arguments, device=device, tolerance=tolerance)
    if found is not None:
        click.echo(str(found))
        raise click.exceptions.Exit(1)
    click.echo("The results are right, within the tolerance.")


@debug.command()
@PROGRAM
@click.option("-o", "--output", type=PATH, required=True, help="The file to write (.mlir).")
@click.option("--seconds", type=click.FloatRange(0.1, 1e6), default=90.0, show_default=True, help="The time to search.")
@TRUST
@DEVICE
def minify(program: Path, output: Path, seconds: float, trust: bool, device: str) -> None:
    """Writes the smallest program found that fails as PROGRAM does on random arguments: with wrong results, an error or
    a crash. `trivium debug accuracy` on the new file shows the failure."""
    from trivium.debug import minify as minified

    smallest, how = minified(trivium.load(program, trust=trust), device=device, seconds=seconds)
    smallest.save(output)
    click.echo(f"{output}: {len(list(smallest.main.body.block)) - 1} ops, {how}")


def _target(
    target: str, inputs: Sequence[Path], trust: bool
) -> tuple[Module | Callable[..., object] | onnx.ModelProto, Sequence[object]]:
    """Returns the program that a target names, and its arguments."""
    file, _, name = target.rpartition(":")
    if not file.endswith(".py"):
        from trivium.debug import arguments_of

        module = trivium.load(target, trust=trust)
        arguments = inputs_of_function(module.main, inputs) if inputs else arguments_of(module.main)
        return _model_of(target) or module, arguments
    if inputs:
        raise Error(f"{target} returns its own arguments, expected no --input")
    if not Path(file).is_file():
        raise Error(f"{file} does not exist")
    with _errors_in(file):
        function = runpy.run_path(file).get(name)
    if not callable(function):
        raise Error(f"{file} has no function {name!r}")
    with _errors_in(file):
        returned = function()
    if not isinstance(returned, tuple) or not returned:
        raise Error(f"{name} returned a {type(returned).__name__}, expected a tuple: the model, then its arguments")
    program, *arguments = returned
    if not callable(program) and not isinstance(program, Module):
        raise Error(f"{name} returned a {type(program).__name__} first, expected a model")
    return program, arguments


def _model_of(file: str) -> onnx.ModelProto | None:
    """Returns the model in a file of ONNX, which has an evaluator of its own."""
    if not file.endswith(".onnx"):
        return None
    from trivium.debug.onnx import read

    return read(Path(file))


@contextmanager
def _errors_in(file: str) -> Iterator[None]:
    """Makes what the user's file raises an `Error`, with the line of the file."""
    try:
        yield
    except Error:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        place = f"{file}:{lines[-1]}" if lines else file
        raise Error(f"{place} raised {type(error).__name__}: {error}") from error
