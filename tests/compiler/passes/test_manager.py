"""Pipelines: passes run in order, repetitions until nothing changes, and who watches is told of each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest

from tests.compiler.targets import TARGET
from tests.random_programs.programs import random_program
from trivium.compiler.passes import manager
from trivium.compiler.passes.canonicalize import Canonicalize
from trivium.compiler.passes.dce import DeadCode
from trivium.compiler.passes.manager import Pass, Repeat, run_passes
from trivium.compiler.passes.watch import watched_by, watcher
from trivium.compiler.pipeline import optimize
from trivium.ir.core import Operation
from trivium.ir.errors import Error
from trivium.ir.func import Module
from trivium.ir.text import parse

TEXT = """
func.func @main(%x: tensor<i32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.add %zero, %x : tensor<i32>
  %1 = stablehlo.negate %x : tensor<i32>
  return %0 : tensor<i32>
}
"""


@dataclass
class Told:
    """Writes down what it is told."""

    words: list[str] = field(default_factory=list)

    def began(self, module: Module) -> None:
        self.words.append("began")

    def passed(self, name: str, module: Module) -> None:
        self.words.append(name)

    def rewrote(self, rule: object, op: Operation, inserted: Sequence[Operation], users: Iterable[Operation]) -> None:
        self.words.append(getattr(rule, "__name__", "?"))


class Fails(Pass):
    NAME = "fails"

    def run(self, module: Module) -> bool:
        raise Error("no")


def test_a_repetition_ends_when_nothing_changes() -> None:
    module = run_passes(parse(TEXT), (Repeat((Canonicalize(), DeadCode())),), verify=True)
    assert len(list(module.main.body.block)) == 1


def test_watchers_see_every_pass_that_changes_something_and_every_rewrite() -> None:
    told = Told()
    with watched_by(told):
        run_passes(parse(TEXT), (Repeat((Canonicalize(), DeadCode())), DeadCode()))
    assert told.words == ["began", "constant_to_the_right", "add_zero", "canonicalize", "dce"]


def test_a_failed_pipeline_ends_the_watch() -> None:
    told = Told()
    with pytest.raises(Error, match="no"), watched_by(told):
        run_passes(parse(TEXT), (Fails(),))
    assert watcher() is None
    assert told.words == ["began"]


def test_an_error_names_the_pass() -> None:
    with pytest.raises(Error, match="while: pass fails"):
        run_passes(parse(TEXT), (Fails(),))


class Counts(Pass):
    NAME = "counts"
    runs = 0

    def run(self, module: Module) -> bool:
        self.runs += 1
        return False


def test_a_repetition_runs_again_only_after_a_change() -> None:
    counts = Counts()
    clean_up = Repeat((counts,))
    run_passes(parse(TEXT), (clean_up, counts, clean_up, DeadCode(), clean_up))
    assert counts.runs == 3


@pytest.mark.parametrize("seed", range(9_700_000, 9_700_040))
def test_passes_that_say_they_changed_nothing_did_not(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = manager._run

    def honest(step: Pass, module: Module) -> bool:
        before = str(module)
        changed = run(step, module)
        assert changed or str(module) == before, step.NAME
        return changed

    monkeypatch.setattr(manager, "_run", honest)
    assert optimize(random_program(seed), TARGET).main
