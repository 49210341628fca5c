"""Calls of LAPACK: the interpreter's results, the forms that are refused, and programs of JAX that contain them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ir.lapack_cases import CALLS, CASES
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.equality import difference
from trivium.ir.errors import Error
from trivium.ir.interpreter import evaluate
from trivium.ir.lapack import call_attributes, is_target, target_of
from trivium.ir.text import parse, print_module
from trivium.ir.types import F16, F32, F64, tensor


@pytest.mark.parametrize(("name", "dtype"), CALLS)
def test_evaluate(name: str, dtype: Any) -> None:
    case = CASES[name]
    operands = case.make(dtype)
    module = case.module(operands)
    module.verify()
    case.holds(list(operands), evaluate(module, *operands))


@pytest.mark.parametrize("name", CASES)
def test_is_kept_by_files(name: str) -> None:
    module = CASES[name].module(CASES[name].make(CASES[name].dtypes[0]))
    assert difference(parse(print_module(module)), module) == ""
    assert difference(deserialize(serialize(module)), module) == ""


def test_names_of_types() -> None:
    assert target_of("orgqr", F32) == "lapack_sorgqr_ffi"
    assert target_of("orgqr", tensor(of=np.complex128).element_type) == "lapack_zungqr_ffi"
    with pytest.raises(Error, match="getrf has elements of f16, expected f32, f64 or complex"):
        target_of("getrf", F16)
    assert target_of("sytrf", tensor(of=np.complex64).element_type) == "lapack_csytrf_ffi"
    with pytest.raises(Error, match="hetrf has elements of f32, expected complex numbers of f32 or f64"):
        target_of("hetrf", F32)
    assert not is_target("lapack_shetrf_ffi")


SQUARE = "%0:3 = stablehlo.custom_call @lapack_ssyevd_ffi(%a) {api_version = 4 : i32, CONFIG LAYOUTS} : SIGNATURE"
CONFIG = "backend_config = {mode = 86 : ui8, uplo = 76 : ui8},"
COLUMNS = "operand_layouts = [dense<[0, 1]> : tensor<2xindex>],"
OTHERS = "dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>"
LAYOUTS = f"{COLUMNS} result_layouts = [dense<[0, 1]> : tensor<2xindex>, {OTHERS}]"
SIGNATURE = "(tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>, tensor<i32>)"


def refused(message: str, config: str = CONFIG, layouts: str = LAYOUTS, signature: str = SIGNATURE) -> None:
    """An invalid call of syevd raises an error, and nothing runs."""
    argument = signature.partition(")")[0].removeprefix("(")
    call = SQUARE.replace("CONFIG", config).replace("LAYOUTS", layouts).replace("SIGNATURE", signature)
    module = parse(f"func.func @main(%a: {argument}) {{ {call.rstrip()} return }}")
    operand = np.zeros(next(iter(module.functions.values())).body.block.arguments[0].type.static_shape, np.float32)
    with pytest.raises(Error, match=message):
        evaluate(module, operand)


def test_refused_calls() -> None:
    refused("has the attributes mode, expected mode, uplo", config="backend_config = {mode = 86 : ui8},")
    refused("mode has 83, expected the code of one of V, N", config=CONFIG.replace("86", "83"))
    rows = LAYOUTS.replace("[dense<[0, 1]> : tensor<2xindex>],", "[dense<[1, 0]> : tensor<2xindex>],")
    refused(r"has layout \[1, 0\], expected \[0, 1\]", layouts=rows)
    refused("has no layouts", layouts="", config=CONFIG.rstrip(","))
    refused("operand 0 has type tensor<4x3xf32>", signature=SIGNATURE.replace("(tensor<4x4", "(tensor<4x3", 1))
    refused("result 1 has type tensor<5xf32>, expected tensor<4xf32>", signature=SIGNATURE.replace("<4xf", "<5xf"))


def test_refused_operands() -> None:
    with pytest.raises(Error, match="orgqr: has 2 reflectors of 3 rows and 4 columns"):
        call_attributes("orgqr", [tensor(3, 4), tensor(2)], {})
    with pytest.raises(Error, match="low and high have 0 and 3, expected a range within 1 to 3"):
        call_attributes("gehrd", [tensor(3, 3)], {"low": 0, "high": 3})
    with pytest.raises(Error, match="operand 1 has type tensor<3xf64>, expected tensor<3xi32>"):
        call_attributes("geqp3", [tensor(3, 3), tensor(3, of=F64)], {})
    with pytest.raises(Error, match="getrf has 2 operands, expected 1"):
        call_attributes("getrf", [tensor(3, 3), tensor(3)], {})
