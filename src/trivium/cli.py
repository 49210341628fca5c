"""The command line, `trivium`. Every error is one message on standard error and exit code 2, never a traceback.

Commands are built with Click (the usual choice, and it composes), tables with Rich.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import trivium
from trivium.commands.debug import debug
from trivium.commands.explain import diff, explain
from trivium.commands.inputs import inputs_of, reshaped, static_types
from trivium.commands.options import DEVICE, INPUTS, PATH, PROGRAM, RANDOM, SHAPES, THREADS, TRUST
from trivium.executable import STAGES, Executable, Signature, is_artifact
from trivium.ir.errors import Error
from trivium.ir.files import writing
from trivium.ir.func import Module

if TYPE_CHECKING:
    from trivium.backends.table.discovery import Found


class _Failure(click.ClickException):
    """One message on standard error."""

    exit_code = 2


class _Commands(click.Group):
    """A group that reports Trivium's errors as messages, not as crashes."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Error as error:
            raise _Failure(str(error)) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(trivium.__version__, prog_name="trivium")
def main() -> None:
    """One program from any framework, fast on any device."""


@main.command()
@click.argument("source", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="The file to write (.mlir, .mlirbc).")
@click.option("--target-version", help="The version of StableHLO to write for (.mlirbc), as in 1.9.0.")
@SHAPES
@TRUST
def convert(source: Path, output: Path, target_version: str | None, shapes: Sequence[str], trust: bool) -> None:
    """Converts a model (.onnx, .pt2, .keras, .h5, SavedModel folder, .mlir, .mlirbc) to a Trivium program."""
    module = _loaded(source, trust, shapes)
    module.verify()
    module.save(output, version=target_version)
    click.echo(f"{output}: {_count_ops(module)} ops, {_described(module)}")


@main.command()
@PROGRAM
@click.option("-o", "--output", type=PATH, required=True, help="The file to write.")
@click.option("--target", help="The kind of processor: x86-64-v2, -v3, -v4 or aarch64; by default, this one.")
@THREADS
@TRUST
@DEVICE
def compile(program: Path, output: Path, target: str | None, threads: int | None, trust: bool, device: str) -> None:
    """Compiles a program to a file for `trivium run` and trivium.load_executable, on machines like this one."""
    compiled = trivium.compile(trivium.load(program, trust=trust), device=device, target=target, threads=threads)
    compiled.save(output)
    click.echo(f"{output}: {output.stat().st_size} bytes, {compiled.signature}")


@main.command()
@PROGRAM
@click.option("--stage", type=click.Choice(STAGES), help="A stage of compilation; by default the program itself.")
@click.option("--html", type=PATH, help="Write a page that shows the program and its stages to this file instead.")
@click.option("--profile", "timed", is_flag=True, help="Run it on random inputs, and show the times on the page.")
@SHAPES
@TRUST
@click.option("--device", help="The device to compile for, with --stage or --html; by default the CPU.")
def show(
    program: Path,
    stage: str | None,
    html: Path | None,
    timed: bool,
    shapes: Sequence[str],
    trust: bool,
    device: str | None,
) -> None:
    """Prints a program, or a stage of its compilation."""
    module = _loaded(program, trust, shapes)
    if timed and html is None:
        raise Error("--profile shows times on a page, expected --html as well (trivium profile prints them)")
    if html is not None:
        from trivium.page import page_of, write_page

        compiled = _traced(module, device or "cpu") if timed else None
        found = compiled.profile(*inputs_of(compiled.signature, 0, ())) if compiled else None
        write_page(html, page_of(module, program.name, device or "cpu", stage or "", profile=found))
        click.echo(f"Wrote {html}.")
        return
    if stage is None and device is not None:
        raise Error("--device selects the device of a stage, expected --stage or --html as well")
    click.echo(str(module) if stage is None else trivium.compile(module, device=device or "cpu").stage(stage))


@main.command()
@PROGRAM
@RANDOM
@INPUTS
@click.option("--reshape", is_flag=True, help="Reshape inputs of the right size to the program's shapes.")
@click.option("--save", type=PATH, help="Write the results to this .npz file, named by position.")
@TRUST
@DEVICE
def run(
    program: Path,
    seed: int | None,
    inputs: Sequence[Path],
    reshape: bool,
    save: Path | None,
    trust: bool,
    device: str,
) -> None:
    """Compiles a program and runs it once. A file that `trivium compile` wrote runs immediately, and needs --trust,
    because it contains machine code."""
    compiled = _compiled(program, trust, device)
    arguments = inputs_of(compiled.signature, seed, inputs)
    if reshape:
        kinds = static_types(compiled.signature)
        arguments = [reshaped(array, kind) for array, kind in zip(arguments, kinds, strict=True)]
    results = compiled(*arguments)
    if save is not None:
        _save(save, results)
    table = Table("result", "shape", "dtype", "minimum", "mean", "maximum")
    for index, (parameter, array) in enumerate(zip(compiled.signature.results, results, strict=True)):
        table.add_row(parameter.name or str(index), str(array.shape), str(array.dtype), *_summary(array))
    _print(table)


@main.command()
@PROGRAM
@click.option("--against", default="", help="Peers to measure in the same run, separated by commas: xla, iree.")
@THREADS
@click.option("--seconds", type=click.FloatRange(0.1, 1e6), default=3.0, show_default=True, help="Time for each.")
@TRUST
@DEVICE
def bench(program: Path, against: str, threads: int | None, seconds: float, trust: bool, device: str) -> None:
    """Measures a program's median latency, interleaved with its peers'."""
    from trivium.commands.bench import contenders, measure

    module = trivium.load(program, trust=trust)
    compiled = trivium.compile(module, device=device, threads=threads)
    arguments = inputs_of(compiled.signature, 0, ())
    peers = contenders(module, arguments, [name for name in against.split(",") if name], threads)
    timings = measure({"trivium": lambda: compiled(*arguments), **peers}, seconds)
    table = Table("contender", "median", "fastest", "relative to trivium")
    for name, (median, fastest) in timings.items():
        relative = median / timings["trivium"][0]
        table.add_row(name, f"{median * 1e6:.1f} us", f"{fastest * 1e6:.1f} us", f"{relative:.2f}")
    _print(table)


@main.command()
@PROGRAM
@RANDOM
@INPUTS
@click.option("--runs", type=click.IntRange(min=1), default=20, show_default=True, help="How often it runs.")
@THREADS
@click.option("--trace", type=PATH, help="Write one run to this file, as a trace that Perfetto opens.")
@click.option("--json", "table", type=PATH, help="Write the table to this file, as JSON.")
@click.option("--html", type=PATH, help="Write a page to this file that shows the times in all stages of the program.")
@SHAPES
@TRUST
@DEVICE
def profile(
    program: Path,
    seed: int | None,
    inputs: Sequence[Path],
    runs: int,
    threads: int | None,
    trace: Path | None,
    table: Path | None,
    html: Path | None,
    shapes: Sequence[str],
    trust: bool,
    device: str,
) -> None:
    """Shows where the time of a run goes: each step, its share, how near it is to the device's limits, and the line of
    the source that it came from."""
    module = _loaded(program, trust, shapes)
    compiled = _traced(module, device, threads) if html else trivium.compile(module, device=device, threads=threads)
    found = compiled.profile(*inputs_of(compiled.signature, seed, inputs), runs=runs)
    click.echo(str(found))
    if trace is not None:
        found.save(trace, trace=True)
    if table is not None:
        found.save(table)
    if html is not None:
        compiled.show(html, profile=found)


@main.command()
def devices() -> None:
    """Lists the devices that programs can run on, and the PJRT plugins that were found."""
    from trivium.backends import discovered
    from trivium.backends.table.discovery import plugins

    table = Table("device", "kind", "memory", "driver")
    found, reasons = discovered()
    for device in found:
        name = f"{device.client.platform_name}:{device.id}"
        table.add_row(name, escape(device.kind), device.default_memory.kind, escape(device.client.platform_version))
    for name, reason in reasons.items():
        table.add_row(name, "cannot be used", "", escape(reason))
    _print(table)
    table = Table("PJRT plugin", "found", "versions", "devices")
    for plugin in plugins():
        table.add_row(plugin.name, escape(plugin.source), *map(escape, _described_plugin(plugin)))
    _print(table)


@main.command()
@click.option("--output", type=PATH, default=Path("out"), show_default=True, help="The folder for programs and report.")
@click.option("--device", default="cpu", show_default=True, help="The device for the converted models.")
def demo(output: Path, device: str) -> None:
    """Trains a small CNN in PyTorch, TensorFlow and JAX through Trivium, then converts and compares the models."""
    from trivium.commands.demo import run as run_demo

    run_demo(output, device)


for command in (debug, diff, explain):
    main.add_command(command)


def _described_plugin(plugin: Found) -> tuple[str, str]:
    """The versions and devices of a plugin, or why it is refused."""
    from trivium.backends.table.discovery import plugin_client

    try:
        client = plugin_client(plugin.name)
        version = ".".join(map(str, client.plugin.version))
        kinds = ", ".join(f"{plugin.name}:{device.id} ({device.kind})" for device in client.devices)
        return f"PJRT {version}; {client.platform_name}, {client.platform_version}", kinds
    except Error as error:
        return f"refused: {error}", ""


def _print(table: Table) -> None:
    # Wide enough for the content if the output is a file or a pipe.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    console.print(table)


def _count_ops(module: Module) -> int:
    return sum(1 for function in module.functions.values() for _ in function.body.walk())


def _described(module: Module) -> str:
    """Returns the signature of the program; for a library of functions, which has no entry, their names."""
    public = [name for name, function in module.functions.items() if function.sym_visibility != "private"]
    if "main" in public or len(public) == 1:
        return str(Signature.of(module.main))
    return f"no entry, functions {', '.join(public) or 'none'}"


def _compiled(program: Path, trust: bool, device: str) -> Executable:
    if not program.is_file() or not is_artifact(program):
        return trivium.compile(trivium.load(program, trust=trust), device=device)
    if not trust:
        raise Error(f"{program} holds machine code, expected --trust: only if you trust its origin")
    return trivium.load_executable(program, device=device)


def _loaded(program: Path, trust: bool, shapes: Sequence[str]) -> Module:
    """Loads a program, with the sizes fixed that `shapes` names."""
    from trivium.commands.shapes import with_shapes

    module = trivium.load(program, trust=trust)
    return with_shapes(module, shapes) if shapes else module


def _traced(module: Module, device: str, threads: int | None = None) -> Executable:
    """Compiles a program for a page with its times."""
    from trivium.backends.advice import advised
    from trivium.compiler.stages import CompileOptions
    from trivium.page.traced import traced

    with advised(module):
        return Executable(traced(module, device, CompileOptions(threads)))


def _save(path: Path, results: Sequence[np.ndarray]) -> None:
    arrays: dict[str, Any] = {str(index): array for index, array in enumerate(results)}
    with writing(path) as file:  # NumPy would add a suffix to the name
        np.savez(file, **arrays)


def _summary(array: np.ndarray) -> list[str]:
    if array.size == 0:
        return ["-", "-", "-"]
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    magnitudes = np.abs(wide) if array.dtype.kind == "c" else wide
    return [f"{value:.6g}" for value in (magnitudes.min(), magnitudes.mean(), magnitudes.max())]
