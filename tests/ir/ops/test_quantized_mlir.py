"""Compares with MLIR which ops take quantized elements, for every record after its floats are made quantized, and what
the records of quantized elements mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from tests.ir.bytecode.mlir import parsed
from tests.ir.ops.records import Record, collect
from tests.ir.quantized import per_tensor
from trivium.ir.errors import Error
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse, print_module
from trivium.ir.types import TensorType, is_quantized

pytestmark = pytest.mark.jax

ELEMENTS = {
    "per tensor": "!quant.uniform<i8:f32, 0.5>",
    "per axis": "!quant.uniform<i8:f32:0, {%s}>",
    "per block": "!quant.uniform<i8:f32:{0:1}, {0.5}>",
}

SOME_OF_A_FAMILY = "MLIR wants one element type of some ops of this family, and not of others"
NOT_COMPARED = "MLIR leaves out the parameters; the specification wants element types equal, as they mean nothing else"

DIFFERING = {
    ("chlo.broadcast_atan2", "per axis"): SOME_OF_A_FAMILY,
    ("chlo.broadcast_divide", "per axis"): SOME_OF_A_FAMILY,
    ("chlo.broadcast_next_after", "per axis"): SOME_OF_A_FAMILY,
    ("chlo.broadcast_polygamma", "per axis"): SOME_OF_A_FAMILY,
    ("chlo.broadcast_power", "per axis"): SOME_OF_A_FAMILY,
    ("chlo.broadcast_remainder", "per axis"): SOME_OF_A_FAMILY,
    ("chlo.ragged_dot", "per axis"): "the lhs of a product is quantized per tensor, as that of dot_general (I1)",
    ("stablehlo.collective_reduce", "per tensor"): "JAX's MLIR does not have the op",
    ("stablehlo.triangular_solve", "per tensor"): "the specification takes quantized matrices (I1, I2)",
}
"""Ops that either MLIR or Trivium refuses, and the other one accepts, and why."""


OTHER_PARAMETERS = {
    "chlo.broadcast_atan2": SOME_OF_A_FAMILY,
    "chlo.broadcast_divide": SOME_OF_A_FAMILY,
    "chlo.broadcast_multiply": SOME_OF_A_FAMILY,
    "chlo.broadcast_next_after": SOME_OF_A_FAMILY,
    "chlo.broadcast_polygamma": SOME_OF_A_FAMILY,
    "chlo.broadcast_power": SOME_OF_A_FAMILY,
    "chlo.broadcast_remainder": SOME_OF_A_FAMILY,
    "chlo.broadcast_subtract": SOME_OF_A_FAMILY,
    "chlo.broadcast_select": NOT_COMPARED,
    "stablehlo.all_reduce": NOT_COMPARED,
    "stablehlo.dynamic_broadcast_in_dim": NOT_COMPARED,
    "stablehlo.dynamic_gather": NOT_COMPARED,
    "stablehlo.map": NOT_COMPARED,
    "stablehlo.scatter": NOT_COMPARED,
    "stablehlo.select_and_scatter": NOT_COMPARED,
    "stablehlo.set_dimension_size": NOT_COMPARED,
    "stablehlo.torch_index_select": NOT_COMPARED,
    "stablehlo.select": "MLIR wants on_true and on_false equal; the specification leaves parameters open (C2)",
}
"""Ops that either MLIR or Trivium refuses once an operand or result has other parameters, and the other one accepts,
and why."""


def quantized(text: str, kind: str) -> str:
    """Returns the program with quantized elements in place of f32."""

    def element(found: re.Match) -> str:
        extents = found.group(1)
        slices = int(extents.partition("x")[0]) if extents[:1].isdigit() else 1
        return f"tensor<{extents}{ELEMENTS[kind].replace('%s', ','.join(['0.5'] * max(slices, 1)))}>"

    return re.sub(r"tensor<((?:[0-9?]+x)*)f32>", element, text)


def taken_by_mlir(text: str) -> bool:
    from jaxlib.mlir import ir

    try:
        parsed(text)
    except ir.MLIRError:
        return False
    return True


def taken(text: str) -> bool:
    try:
        parse(text).verify()
    except Error:
        return False
    return True


def test_mlir_takes_the_same():
    differing: dict[tuple[str, str], str] = {}
    for record in collect():
        text = print_module(record.module(), generic=True)
        for kind in ELEMENTS:
            changed = text if record.types else quantized(text, kind)
            if changed != text and taken(changed) != taken_by_mlir(changed):
                differing[record.op.NAME, kind] = changed
    assert differing.keys() == DIFFERING.keys(), differing


def with_other_parameters(record: Record) -> Iterator[str]:
    """Yields the quantized program with another scale and zero point for one of the op's operands or results at a
    time."""
    module = parse(quantized(print_module(record.module(), generic=True), "per tensor"))
    op = next(op for op in module.walk() if type(op) is record.op)
    for value in (*op.operands, *op.results):
        kept = value.type
        if isinstance(kept, TensorType) and is_quantized(kept.element_type):
            value.type = kept.with_element(per_tensor(0.25, 1))
            module.main.refresh_type()
            yield print_module(module, generic=True)
            value.type = kept


def test_mlir_takes_the_same_parameters():
    differing: dict[str, str] = {}
    for record in collect():
        text = print_module(record.module(), generic=True)
        changed = text if record.types else quantized(text, "per tensor")
        if changed == text or not (taken(changed) and taken_by_mlir(changed)):
            continue
        for program in with_other_parameters(record):
            if taken(program) != taken_by_mlir(program):
                differing[record.op.NAME] = program
    assert differing.keys() == OTHER_PARAMETERS.keys(), differing


EXPANDED_OTHERWISE = {
    "stablehlo.add": "MLIR rounds each operand to the result's integers first, and is one off",
    "stablehlo.dot_general": "MLIR takes the first scale of a result for all of its slices",
    "stablehlo.select": "MLIR keeps the integers of the operands, whatever the result's parameters are",
}
"""Ops for which MLIR's expansion computes other integers, and why."""


def expanded(text: str) -> str | None:
    """Returns the program after MLIR has expanded the quantized elements; `None` if it cannot."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo
    from jaxlib.mlir.passmanager import PassManager

    stablehlo.register_stablehlo_passes()
    module = parsed(text)
    passes = "stablehlo-legalize-quant-to-math,chlo-legalize-to-stablehlo"
    try:
        with module.context:
            PassManager.parse(f"builtin.module(func.func({passes}))").run(module.operation)
    except ir.MLIRError:
        return None
    return str(module)


def test_mlir_expands_to_the_same_integers():
    equal, differing = set(), set()
    for record in (record for record in collect() if record.types):
        text = expanded(print_module(record.module()))
        if text is not None:
            pairs = zip(evaluate(record.module(), *record.arrays), evaluate(parse(text), *record.arrays), strict=True)
            same = all(np.array_equal(mine, theirs) for mine, theirs in pairs)
            (equal if same else differing).add(record.op.NAME)
    assert differing == EXPANDED_OTHERWISE.keys()
    assert {"stablehlo.uniform_quantize", "stablehlo.uniform_dequantize", "stablehlo.dot_general"} <= equal
