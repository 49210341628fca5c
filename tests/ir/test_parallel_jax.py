"""Programs of JAX for several devices: the interpreter's processes together compute what JAX's devices compute."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.ir.collective_programs import ARRAY, DEVICES, FLAGS, NAMES
from trivium.ir.func import Function, Module
from trivium.ir.parallel import run_parallel
from trivium.ir.text import parse
from trivium.ir.types import FunctionType

pytestmark = pytest.mark.jax


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> dict[str, np.ndarray]:
    path = tmp_path_factory.mktemp("collectives") / "programs.npz"
    command = [sys.executable, "-m", "tests.ir.collective_programs", str(path)]
    subprocess.run(command, check=True, env={**os.environ, **FLAGS}, cwd=Path(__file__).parents[2], timeout=300)
    with np.load(path) as found:
        return dict(found)


def for_one_device(text: str) -> Module:
    """Returns the program that each device runs: the body of the only `sdy.manual_computation`."""
    module = parse(text)
    (manual,) = (op for op in module.main.body.block if op.NAME == "sdy.manual_computation")
    inputs, outputs = (
        [value.type for value in values] for values in (manual.body.arguments, manual.body.terminator.operands)
    )
    attributes = {"sym_name": "main", "function_type": FunctionType(tuple(inputs), tuple(outputs))}
    main = Function.create(attributes=attributes, regions=[manual.body.clone()])
    return Module.build(functions=[main, *(f.clone() for f in module.functions.values() if f.sym_name != "main")])


@pytest.mark.parametrize("name", NAMES)
def test_program(programs, name) -> None:
    module = for_one_device(str(programs[f"{name}.text"]))
    results = run_parallel(module, [["main"] * DEVICES], [[part] for part in np.split(ARRAY, DEVICES)])
    np.testing.assert_array_equal(np.concatenate([result for (result,) in results]), programs[f"{name}.result"])
