"""Which ops take quantized elements: MLIR is asked, of every record whose floats are made quantized."""

from __future__ import annotations

import re

import pytest

from tests.ir.bytecode.mlir import parsed
from tests.ir.ops.records import collect
from trivium.ir.errors import Error
from trivium.ir.text import parse, print_module

pytestmark = pytest.mark.jax

ELEMENTS = {
    "per tensor": "!quant.uniform<i8:f32, 0.5>",
    "per axis": "!quant.uniform<i8:f32:0, {%s}>",
    "per block": "!quant.uniform<i8:f32:{0:1}, {0.5}>",
}

ONE_TYPE = "MLIR wants one element type of some ops of this family, and not of others"

DIFFERING = {
    ("chlo.broadcast_atan2", "per axis"): ONE_TYPE,
    ("chlo.broadcast_divide", "per axis"): ONE_TYPE,
    ("chlo.broadcast_next_after", "per axis"): ONE_TYPE,
    ("chlo.broadcast_polygamma", "per axis"): ONE_TYPE,
    ("chlo.broadcast_power", "per axis"): ONE_TYPE,
    ("chlo.broadcast_remainder", "per axis"): ONE_TYPE,
    ("chlo.broadcast_zeta", "per axis"): "MLIR takes floats only, of this one op of its family",
    ("chlo.broadcast_zeta", "per tensor"): "MLIR takes floats only, of this one op of its family",
    ("chlo.ragged_dot", "per axis"): "the lhs of a product is quantized per tensor, as that of dot_general (I1)",
    ("stablehlo.collective_reduce", "per tensor"): "JAX's MLIR does not have the op",
    ("stablehlo.compare", "per tensor"): "MLIR takes any compare_type; TOTALORDER is for floats (C3)",
    ("stablehlo.dot_general", "per tensor"): "MLIR refuses algorithms that no hardware has",
    ("stablehlo.optimization_barrier", "per axis"): "values of any kind pass through a barrier",
    ("stablehlo.triangular_solve", "per tensor"): "the specification takes quantized matrices (I1, I2)",
}
"""Where one of both refuses what the other takes, and why."""


def quantized(text: str, kind: str) -> str:
    """The program with quantized elements in the place of f32."""

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
