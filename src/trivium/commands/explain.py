"""`trivium diff` and `trivium explain`: what differs between two programs, and what the compiler made of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import trivium
from trivium.commands.options import DEVICE, PATH, PROGRAM, TRUST
from trivium.ir.errors import Error

if TYPE_CHECKING:
    import numpy as np

    from trivium.debug.diff import Comparison


@click.command()
@click.argument("before", type=PATH)
@click.argument("after", type=PATH, required=False)
@click.option("--html", type=PATH, help="Write a page that shows both instead.")
@click.option("--random", is_flag=True, help="Evaluate both on random arguments, and name the first op that differs.")
@TRUST
def diff(before: Path, after: Path | None, html: Path | None, random: bool, trust: bool) -> None:
    """Shows what differs between two programs, with equal parts folded. With one program: what the optimizer
    changed."""
    from trivium.compiler.pipeline import optimize
    from trivium.debug import arguments_of
    from trivium.debug.diff import SIGNS, Comparison

    first = trivium.load(before, trust=trust)
    second = optimize(first) if after is None else trivium.load(after, trust=trust)
    comparison = Comparison(first, second)
    if html is not None:
        from trivium.page import write_page
        from trivium.page.diff import diff_page

        write_page(html, diff_page(comparison, (before.name, "optimized" if after is None else after.name)))
        click.echo(f"Wrote {html}.")
        return
    for line in comparison.lines():
        click.echo(line)
    counts = ((sign.strip() and f" ({sign})", kind, comparison.counts[kind]) for kind, sign in SIGNS.items())
    click.echo(", ".join(f"{count} {kind}{sign}" for sign, kind, count in counts))
    if random:
        if first.main.function_type.inputs != second.main.function_type.inputs:
            raise Error("the programs take different arguments, expected the same types to compare numbers")
        click.echo(_numbers(comparison, arguments_of(first.main)))


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
