"""A tape of the optimizer: the program at every step is on it, and each change names its rule."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import trivium
from tests.page.programs import CALLS, LOOP, TEXT
from trivium.cli import main
from trivium.compiler.passes.watch import watched_by
from trivium.compiler.pipeline import optimize
from trivium.debug.tape import Line, Tape, _increasing
from trivium.ir.core import Operation
from trivium.ir.func import Module

HOISTED = """
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %a = %x, %fixed = %x) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
   }
   do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %e = stablehlo.tanh %fixed : tensor<4xf32>
    %b = stablehlo.add %a, %e : tensor<4xf32>
    stablehlo.return %j, %b, %fixed : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}
"""
PROGRAMS = {"layers": TEXT, "loop": LOOP, "calls": CALLS, "hoisted": HOISTED}


def recorded(text: str) -> tuple[Tape, Module]:
    tape = Tape()
    with watched_by(tape):
        return tape, optimize(trivium.parse(text))


def at(tape: Tape, step: int) -> list[str]:
    return [line.text for line in tape.lines if line.born <= step < line.died]


def nameless(lines: list[str]) -> list[str]:
    return [re.sub(r"%[\w.#$-]+", "%", line).strip() for line in lines]


def body(module: Operation) -> list[str]:
    """The lines of a module without the module's own."""
    lines = nameless(str(module).rstrip().split("\n"))
    return lines[1:-1] if lines[0].startswith("module") else lines


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_the_first_and_the_last_program_are_on_the_tape(text: str) -> None:
    tape, result = recorded(text)
    assert nameless(at(tape, 0)) == body(trivium.parse(text))
    assert nameless(at(tape, len(tape.steps))) == body(result)
    ends = [(0, 0), *((run.first, run.end) for run in tape.passes), (len(tape.steps), len(tape.steps))]
    assert all(before[1] == after[0] for before, after in pairwise(ends))
    assert all(before.after == after.before for before, after in pairwise(tape.passes))


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_the_program_after_each_pass_is_on_the_tape(text: str) -> None:
    """Every step of the tape is the program as the pass left it."""
    seen: dict[int, list[str]] = {}

    class Checked(Tape):
        def passed(self, name: str, module: Module) -> None:
            super().passed(name, module)
            seen[len(self.steps)] = body(module)

    tape = Checked()
    with watched_by(tape):
        optimize(trivium.parse(text))
    assert not tape.steps or len(tape.steps) in seen
    for step, expected in seen.items():
        assert nameless(at(tape, step)) == expected


def test_a_rewrite_names_its_rule_and_keeps_the_names() -> None:
    tape, _ = recorded(CALLS)
    rules = [step.rule for step in tape.steps]
    step = rules.index("constant_to_the_right")
    assert tape.steps[step].about == "c + x == x + c"
    shown = [f"{sign} {line.text.strip()}" for sign, line in tape.difference(step, step + 1) if isinstance(line, Line)]
    assert [line for line in shown if line[0] != " "] == [
        "- %a = stablehlo.multiply %one, %x : tensor<4xf32>",
        "+ %a = stablehlo.multiply %x, %one : tensor<4xf32>",
    ]


def test_calls_are_seen_inlined() -> None:
    tape, _ = recorded(CALLS)
    assert tape.passes[0].name == "inline"
    signs = [(sign, line.text) for sign, line in tape.difference(0, 1) if isinstance(line, Line)]
    assert sum(sign == "-" and "call @part" in text for sign, text in signs) == 2
    assert sum(sign == "+" and "stablehlo.add" in text for sign, text in signs) == 4


def test_what_leaves_a_loop_is_a_line_before_it() -> None:
    tape, _ = recorded(HOISTED)
    (run,) = [run for run in tape.passes if run.name == "hoist"]
    signs = [(sign, line.text.strip()) for sign, line in tape.difference(run.first, run.end) if isinstance(line, Line)]
    assert ("+", "%e = stablehlo.tanh %x : tensor<4xf32>") in signs
    assert ("-", "%e = stablehlo.tanh %fixed : tensor<4xf32>") in signs


def test_equal_lines_are_folded() -> None:
    tape, _ = recorded(CALLS)
    assert list(tape.difference(0, 0)) == [(" ", len(at(tape, 0)))]


@pytest.mark.parametrize(("places", "kept"), [([5, 1, 2, 3], {1, 2, 3}), ([1, 2, 0, 3], {0, 1, 3}), ([], set())])
def test_as_few_ops_as_possible_move(places: list[int], kept: set[int]) -> None:
    assert _increasing(places) == kept


def test_nobody_watches_by_default() -> None:
    tape, _ = recorded(CALLS)
    steps = len(tape.steps)
    optimize(trivium.parse(CALLS))
    assert len(tape.steps) == steps


def command(*words: str) -> str:
    result = CliRunner().invoke(main, ["diff", *words])
    return result.output


def test_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "program.mlir"
    file.write_text(CALLS)
    assert command(str(file), "--passes").split("\n")[0].split()[:2] == ["1", "inline"]
    assert "+   %" in command(str(file), "--pass", "1")
    assert "constant_to_the_right  c + x == x + c" in command(str(file), "--pass", "3", "--rewrites")
    assert "expected at most" in command(str(file), "--pass", "99")
    assert "expected --pass" in command(str(file), "--rewrites")
    assert "two were given" in command(str(file), str(file), "--passes")


def test_stages_of_two_programs(tmp_path: Path) -> None:
    files = [tmp_path / "a.mlir", tmp_path / "b.mlir"]
    for file, op in zip(files, ("tanh", "sine"), strict=True):
        file.write_text(TEXT.replace("tanh", op))
    words = [*map(str, files), "--stage", "kernels"]
    assert "-" in {line[:1] for line in command(*words).split("\n")}
    assert command(str(files[0]), str(files[0]), "--stage", "graph") == "The stages are equal.\n"
    assert "only one was given" in command(str(files[0]), "--stage", "graph")
