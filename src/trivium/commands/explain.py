"""`trivium diff` and `trivium explain`: how two programs differ, and how the compiler transformed a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trivium
from trivium.commands.inputs import inputs_of_function
from trivium.commands.options import DEVICE, INPUTS, PATH, PROGRAM, TRUST
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
@INPUTS
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
    inputs: Sequence[Path],
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
                "--passes, --pass and --rewrites show what the optimizer changes in one program, but two were given"
            )
        if rewrites and number is None:
            raise Error("--rewrites shows the rewrites of one pass, expected --pass as well")
        lines = _passes(first, device) if number is None else _pass(first, device, number, rewrites)
    elif stage is not None:
        if second is None:
            raise Error("--stage compares a stage of two programs, but only one was given")
        lines = _stage(first, second, stage, device)
    else:
        names = (before.name, "optimized" if after is None else after.name)
        _ops(first, second, names, html, _arguments(first, second, random, inputs))
        return
    if html is not None or random or inputs:
        raise Error("--html, --random and --input compare two programs op by op, expected no other options")
    for line in lines:
        click.echo(line)


def _arguments(
    first: Module, second: Module | None, random: bool, inputs: Sequence[Path]
) -> Sequence[np.ndarray] | None:
    """Returns the arguments on which two programs are compared; `None` if only their ops are."""
    from trivium.debug import arguments_of

    if not random and not inputs:
        return None
    if second is not None:
        _require_same_arguments(first, second)
    if random and inputs:
        raise Error("--random and --input cannot be used together")
    return inputs_of_function(first.main, inputs) if inputs else arguments_of(first.main)


def _require_same_arguments(first: Module, second: Module) -> None:
    one, other = (module.main.function_type.inputs for module in (first, second))
    if len(one) != len(other):
        raise Error(f"the programs take {len(one)} and {len(other)} arguments, expected as many to compare numbers")
    for index, (here, there) in enumerate(zip(one, other, strict=True)):
        if here != there:
            raise Error(
                f"argument {index} of the programs is {here} and {there}, expected the same type to compare numbers. "
                "If only the layout differs, export one of the models with a transpose before it; "
                "without --random and --input, only ops are compared"
            )


def _ops(
    first: Module,
    second: Module | None,
    names: tuple[str, str],
    html: Path | None,
    arguments: Sequence[np.ndarray] | None,
) -> None:
    """Compares two programs op by op, and their numbers for `arguments`."""
    from trivium.debug.diff import SIGNS, Comparison

    passes = None
    if second is None:
        first, second, passes = _optimized(first)
    comparison = Comparison(first, second)
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
    from trivium.page.tags import tagged

    before, tape = inline(module), Tape()
    with watched_by(tape):
        after = optimize(tagged(before))
    return before, after, passes_of(tape)


def _tape(module: Module, device: str) -> Tape:
    """Returns the tape of the passes that optimize a program for a device."""
    from trivium.backends import client
    from trivium.compiler.passes.watch import watched_by
    from trivium.compiler.pipeline import optimize
    from trivium.compiler.stages import CompileOptions
    from trivium.debug.tape import Tape
    from trivium.page.traced import Compiler

    found, tape = client(device), Tape()
    if not isinstance(found, Compiler):
        raise Error(f"device {device} has its own compiler, expected a device that Trivium's passes compile for")
    with watched_by(tape):
        optimize(module, found.target(CompileOptions()))
    return tape


def _passes(module: Module, device: str) -> Iterator[str]:
    tape = _tape(module, device)
    if not tape.passes:
        yield "No pass changes anything."
    for number, run in enumerate(tape.passes, 1):
        steps = f"   {run.end - run.first} steps" if run.end - run.first > 1 else ""
        yield f"{number:3}  {run.name:15} {run.before:6} -> {run.after:<6} ops{steps}"


def _pass(module: Module, device: str, number: int, rewrites: bool) -> Iterator[str]:
    tape = _tape(module, device)
    if number > len(tape.passes):
        expected = (
            f"at most {len(tape.passes)} (--passes lists them)" if tape.passes else "none: no pass changes anything"
        )
        raise Error(f"--pass has {number}, expected {expected}")
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
