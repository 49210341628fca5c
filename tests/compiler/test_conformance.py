"""StableHLO's own test programs, compiled: their results pass their own checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import trivium
from tests.ir import checks
from tests.ir.test_conformance import WRONG
from trivium.ir.builder import Builder
from trivium.ir.core import Value
from trivium.ir.errors import ExecutionError
from trivium.ir.func import Call, Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse


def with_arguments(module: Module) -> tuple[Module, list[np.ndarray]]:
    """Returns the program with its inputs as arguments of `main`, so that nothing can be precomputed from them."""
    main = module.main
    calls = [op for op in main.body.block if isinstance(op, Call) and op.callee.name == "inputs"]
    given = [value for call in calls for value in call.results]

    def body(builder: Builder, *arguments):
        values: dict[Value, Value] = dict(zip(given, arguments, strict=True))
        for op in main.body.block:
            if op not in calls and op is not main.body.block.last:
                builder.block.append(op.clone(values))
        return [values[value] for value in main.returned]

    others = [function.clone() for function in module.functions.values() if function is not main]
    arrays = [array for _ in calls for array in evaluate(module, function="inputs")]
    return Module.build(functions=[Function.build("main", [value.type for value in given], body), *others]), arrays


def checked_programs(path: Path) -> Iterator[tuple[Module, list[np.ndarray]]]:
    """Yields a file's programs and their inputs."""
    for text in re.split(r"^// -----$", path.read_text(), flags=re.MULTILINE):
        yield with_arguments(parse(text, path.name))


def failure_of(path: Path) -> str:
    """Returns the message of the first failed check in a file's programs; empty if all pass."""
    for module, arrays in checked_programs(path):
        try:
            trivium.compile(module)(*arrays)
        except ExecutionError as error:
            return str(error)
    return ""


TRUE_TRANSFORMS = {
    "fft_complex128_14_15_16_17": lambda x: np.fft.irfft(x.astype(np.clongdouble), 33),
    "fft_float64_14_15_16_17": lambda x: np.fft.rfft(x.astype(np.longdouble)),
}
"""Programs whose checks allow every number to differ by 3 units in the last place from pocketfft's, however small the
number is compared with others of its transform; and the functions that compute the true values. The precision of a
transform is relative to its largest numbers, so two algorithms agree no better than that. `test_transforms` shows that
ours is as close to the true values."""


def test_programs(conformance):
    checks.register()
    found = {path.stem: failure_of(path) for path in sorted((conformance / "stablehlo" / "testdata").glob("*.mlir"))}
    failed = {name: failure for name, failure in found.items() if failure}
    assert failed.keys() <= WRONG.keys() | TRUE_TRANSFORMS.keys(), failed


@pytest.mark.parametrize("name", TRUE_TRANSFORMS)
def test_transforms(conformance, name):
    text = (conformance / "stablehlo" / "testdata" / f"{name}.mlir").read_text()
    module, (x,) = with_arguments(parse("\n".join(line for line in text.splitlines() if "@check" not in line)))
    (value,) = trivium.compile(module)(x)
    (expected,) = evaluate(module, function="expected")
    true = TRUE_TRANSFORMS[name](x)
    ours, theirs = (np.sqrt(np.mean(np.abs(each - true) ** 2)) for each in (value, expected))
    assert theirs > 0
    assert ours < 1.5 * theirs
