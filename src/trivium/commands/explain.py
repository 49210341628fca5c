"""`trivium diff` and `trivium explain`: what differs between two programs, and what the compiler made of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trivium
from trivium.commands.options import DEVICE, PATH, PROGRAM, TRUST
from trivium.executable import STAGES
from trivium.ir.errors import Error
from trivium.ir.func import Module

if TYPE_CHECKING:
    import numpy as np

    from trivium.debug.diff import Comparison
    from trivium.debug.tape import Tape
    from trivium.page.data import Passes


@click.command()
@click.argument("before", type=PATH)
@click.argument("after", type=PATH, required=False)
@click.option("--html", type=PATH, help="Write a page that shows both instead.")
@click.option("--random", is_flag=True, help="Evaluate both on random arguments, and name the first op that differs.")
@click.option("--passes", is_flag=True, help="Of one program: list what each pass of the optimizer changed.")
@click.option("--pass", "number", type=click.IntRange(min=1), help="Of one program: what this pass changed (--passes).")
@click.option("--rewrites", is_flag=True, help="With --pass: each rewrite of it, with its rule.")
@click.option("--stage", type=click.Choice(STAGES), help="Of two programs: compare this stage of both.")
@TRUST
@DEVICE
def diff(
    before: Path,
    after: Path | None,
    html: Path | None,
    random: bool,
    passes: bool,
    number: int | None,
    rewrites: bool,
    stage: str | None,
    trust: bool,
    device: str,
) -> None:
    """Shows what differs between two programs, with equal parts folded. With one program: what the optimizer
    changed, in all or pass by pass."""
    first = trivium.load(before, trust=trust)
    second = trivium.load(after, trust=trust) if after is not None else None
    if passes or number is not None or rewrites:
        if second is not None:
            raise Error(
                "--passes, --pass and --rewrites show what the optimizer does to one program, and there are two"
            )
        if rewrites and number is None:
            raise Error("--rewrites shows those of one pass, expected --pass, too")
        lines = _passes(first, device) if number is None else _pass(first, device, number, rewrites)
    elif stage is not None:
        if second is None:
            raise Error("--stage compares a stage of two programs, and there is one")
        lines = _stage(first, second, stage, device)
    else:
        _ops(first, second, (before.name, "optimized" if after is None else after.name), html, random)
        return
    if html is not None or random:
        raise Error("--html and --random compare two programs op by op: they go with no other choice")
    for line in lines:
        click.echo(line)


def _ops(first: Module, second: Module | None, names: tuple[str, str], html: Path | None, random: bool) -> None:
    """Compares two programs op by op."""
    from trivium.debug import arguments_of
    from trivium.debug.diff import SIGNS, Comparison

    passes = None
    if second is None:
        first, second, passes = _optimized(first)
    comparison = Comparison(first, second)
    if random and first.main.function_type.inputs != second.main.function_type.inputs:
        raise Error("the programs take different arguments, expected the same types to compare numbers")
    arguments = arguments_of(first.main) if random else None
    if html is not None:
        from trivium.page import write_page
        from trivium.page.diff import diff_page

        write_page(html, diff_page(comparison, names, arguments, passes))
        click.echo(f"Wrote {html}.")
    else:
        for line in comparison.lines():
            click.echo(line)
    counts = ((sign.strip() and f" ({sign})", kind, comparison.counts[kind]) for kind, sign in SIGNS.items())
    click.echo(", ".join(f"{count} {kind}{sign}" for sign, kind, count in counts))
    if arguments is not None:
        click.echo(_numbers(comparison, arguments))


def _optimized(module: Module) -> tuple[Module, Module, Passes]:
    """Returns a program without calls, what the optimizer makes of it, and the passes that do."""
    from trivium.compiler.passes.watch import watched_by
    from trivium.compiler.pipeline import inline, optimize
    from trivium.debug.tape import Tape
    from trivium.page.passes import passes_of
    from trivium.page.tags import ops_of, tag

    before, tape = inline(module), Tape()
    numbered = before.clone()
    tag(ops_of([numbered.main]), "program")
    with watched_by(tape):
        after = optimize(numbered)
    return before, after, passes_of(tape)


def _tape(module: Module, device: str) -> Tape:
    """Returns the tape of the passes that optimize a program for a device."""
    from trivium.backends import client
    from trivium.compiler.passes.watch import watched_by
    from trivium.compiler.pipeline import optimize
    from trivium.compiler.stages import CompileOptions
    from trivium.debug.tape import Tape
    from trivium.page.build import Compiler

    found, tape = client(device), Tape()
    if not isinstance(found, Compiler):
        raise Error(f"device {device} compiles by itself, expected one whose passes are Trivium's")
    with watched_by(tape):
        optimize(module, found.target(CompileOptions()))
    return tape


def _passes(module: Module, device: str) -> Iterator[str]:
    tape = _tape(module, device)
    for number, run in enumerate(tape.passes, 1):
        steps = f"   {run.end - run.first} steps" if run.end - run.first > 1 else ""
        yield f"{number:3}  {run.name:15} {run.before:6} -> {run.after:<6} ops{steps}"


def _pass(module: Module, device: str, number: int, rewrites: bool) -> Iterator[str]:
    tape = _tape(module, device)
    if number > len(tape.passes):
        raise Error(f"--pass has {number}, expected at most {len(tape.passes)} (--passes lists them)")
    run = tape.passes[number - 1]
    if not rewrites:
        yield from tape.text(run.first, run.end)
        return
    for step in range(run.first, run.end):
        rule = tape.steps[step]
        yield f"{step - run.first + 1} of {run.end - run.first}: {rule.rule or run.name}  {rule.about}".rstrip()
        yield from tape.text(step, step + 1)


def _stage(first: Module, second: Module, stage: str, device: str) -> Iterator[str]:
    from difflib import unified_diff

    before, after = (trivium.compile(module, device=device).stage(stage).split("\n") for module in (first, second))
    found = False
    for line in unified_diff(before, after, n=2, lineterm=""):
        if not line.startswith(("---", "+++")):
            yield line
        found = True
    if not found:
        yield "The stages are equal."


def _numbers(comparison: Comparison, arguments: Sequence[np.ndarray]) -> str:
    from trivium.ir.text import print_op

    found = comparison.numbers(arguments)
    if found is None:
        return "The results agree."
    pair, difference = found
    places = [f"  {word}  {print_op(op)}" for word, op in (("first: ", pair.before), ("second:", pair.after)) if op]
    return "\n".join([f"The first numbers that differ: {difference}", *places])


@click.command()
@PROGRAM
@DEVICE
@TRUST
def explain(program: Path, device: str, trust: bool) -> None:
    """Says in sentences why ops are one kernel or several, and what is copied."""
    click.echo(trivium.compile(trivium.load(program, trust=trust), device=device).explain())
