"""The passes of the optimizer on a page: a tape of the program, whose lines name the ops that they came from."""

from __future__ import annotations

from trivium.debug.tape import FOREVER, Tape
from trivium.page.data import Passes, PassRun
from trivium.page.tags import tags_of


def passes_of(tape: Tape) -> Passes:
    """Returns the data of a tape of a program whose ops are tagged with their numbers."""
    lines = tape.lines
    rules = {step: number for number, step in enumerate(dict.fromkeys(tape.steps))}
    return Passes(
        lines=[line.text for line in lines],
        born=[line.born for line in lines],
        died=[-1 if line.died == FOREVER else line.died for line in lines],
        origins=[tags_of(line.op.location) if line.op is not None else [] for line in lines],
        rules=[[step.rule, step.about] for step in rules],
        steps=[rules[step] for step in tape.steps],
        passes=[PassRun(run.name, run.first, run.end, run.before, run.after) for run in tape.passes],
    )
