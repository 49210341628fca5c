"""The table of functions: all are computed inline, and functions that are in no table are refused."""

from __future__ import annotations

import llvmlite.ir as ll
import pytest

from tests.backends.harness import elementwise, load
from trivium.backends.llvm.code import F32, F64
from trivium.backends.llvm.math import f32, function, hyperbolic, inverse, power
from trivium.ir.errors import CompileError

UNARY = (
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine", "cosine", "tan", "tanh",
    "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "cbrt", "erf", "erfc", "erf_inv", "lgamma",
    "digamma",
)  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("op", UNARY)
def test_no_function_calls_the_c_library(op: str, dtype: str) -> None:
    text = load(elementwise(op, [dtype], dtype, 64)).stage("llvm")
    declared = {line.split("@")[1].split("(")[0].strip('"') for line in text.splitlines() if "declare" in line}
    assert {name for name in declared if not name.startswith(("llvm.", "trivium_"))} == set()


def test_each_type_has_its_own_where_there_are_two() -> None:
    assert function("power", F64) is power.power
    assert function("power", F32) is f32.power
    assert function("tanh", F64) is hyperbolic.tanh
    assert function("tanh", ll.VectorType(F32, 8)) is f32.tanh
    assert function("atan", F32) is function("atan", F64) is inverse.atan


@pytest.mark.parametrize("type_", [F32, ll.VectorType(F64, 4)], ids=str)
def test_an_operation_that_no_function_computes(type_: ll.Type) -> None:
    with pytest.raises(CompileError, match=r"nothing of (float|double): no function computes it"):
        function("nothing", type_)
