"""The programs that mutations start from: the records of all ops as text and as artifacts of several versions, the
stored fixtures, and other features of the formats. If `TRIVIUM_CONFORMANCE` is set, StableHLO's own small programs and
recorded artifacts; if JAX is installed, the plain bytecode that its MLIR writes."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import trivium
from tests.ir.ops.records import collect
from trivium.ir.bytecode import serialize
from trivium.ir.func import Module
from trivium.ir.text import parse, print_module

FIXTURES = Path(__file__).parents[1] / "ir" / "bytecode" / "fixtures"
VERSIONS = (None, "0.9.0", "0.12.0", "0.14.0", "1.9.0", "1.20.0")
LONGEST = 6000
"""Small seeds allow more mutations per second, of as many kinds."""

OTHERS = (
    """
#map = affine_map<(d0, d1) -> (d1)>
#loc1 = loc("model.py":41:8 to 42:9)
#loc2 = loc(callsite(#loc1 at fused<{a = 1 : i64}>["f", "g"("h":1:2)]))
!pair = tuple<tensor<2xf32>, tensor<?x3xi8, #stablehlo.bounds<4, ?>>>
module @m attributes {a = [1 : i8, true, "s\\0A", @f::@g, #map, unit, f32], b = {c = -1 : i64, d = #other.x<y>}} {
  func.func public @main(%arg0: !pair {a.b = 1.0 : f32} loc("x"), %arg1: tensor<2xf32>) -> (tensor<2xf32> {r}) {
    %0:2 = stablehlo.custom_call @t(%arg0, %arg1) {backend_config = "", mhlo.x = dense<[1, 2]> : tensor<2xi32>}
      : (!pair, tensor<2xf32>) -> (tensor<2xf32>, tuple<>) loc(#loc2)
    %cst = stablehlo.constant dense_resource<blob> : tensor<2xf32>
    %1 = stablehlo.add %0#0, %cst {k = array<i32: 1, 2>, l = dense<0x7FC00000> : tensor<2x1xf32>} : tensor<2xf32>
    return %1 : tensor<2xf32> loc(unknown)
  }
}
{-#
  dialect_resources: {builtin: {blob: "0x040000000000803F00000040"}},
  external_resources: {x: {y: true, z: "text"}}
#-}
""",
    """
func.func @main(
  %0: tensor<4x!quant.uniform<u8:f32, 0.5:200>>, %1: tensor<2x3x!quant.uniform<i8<-8:7>:f32:1, {0.5:1,0.25,0.1:-2}>>,
  %2: tensor<4x2x!quant.uniform<i8:f32:{0:2, 1:1}, {{0.5:1, 2.0:-3}, {0.25, 0.125:7}}>>
) {
  %3 = "stablehlo.constant"() <{value = dense<2> : tensor<4xi8>}> : () -> tensor<4x!quant.uniform<i8:f32, 0.5>>
  return
}
""",
)
"""Attributes, types, locations and resources that the records do not have."""


@cache
def texts() -> list[str]:
    """Returns programs as text: pretty, generic, and with locations, alternately."""
    found = [*OTHERS] * 4
    for number, module in enumerate(_records()):
        text = print_module(module, generic=number % 3 == 1)
        found.append(print_module(parse(text), locations=True) if number % 3 == 2 else text)
    return found + [path.read_text() for path in _files(FIXTURES, "*.mlir")] + list(_conformance_texts())


@cache
def artifacts() -> list[bytes]:
    """Returns programs as bytecode."""
    found = [path.read_bytes() for path in _files(FIXTURES, "*.mlirbc")]
    if folder := _conformance():
        found += [path.read_bytes() for path in _files(folder / "vhlo", "*.bc", 40_000)]
    modules = [*_records(), *filter(None, map(_parsed, (*OTHERS, *_conformance_texts())))]
    for number, module in enumerate(modules):
        try:
            found.append(serialize(module, VERSIONS[number % len(VERSIONS)]))
        except trivium.Error:  # no artifact, or none this old, can contain it
            continue
    return found + _plain()


def _plain() -> list[bytes]:
    """Returns every third text as plain bytecode, in each version of the encoding, if JAX's MLIR knows its ops."""
    if find_spec("jaxlib") is None:
        return []
    from tests.ir.bytecode.mlir import plain

    found = []
    for number, text in enumerate(texts()[::3]):
        try:
            found.append(plain(text, number % 7))
        except Exception:  # its errors have no common class
            continue
    return found


@cache
def _records() -> list[Module]:
    return [record.module() for record in collect()]


@cache
def _conformance_texts() -> tuple[str, ...]:
    folder = _conformance()
    if folder is None:
        return ()
    return tuple(
        path.read_text()
        for part, step in (("testdata", 12), ("testdata/quantized", 4), ("testdata/dynamic", 8), ("interpret", 1))
        for path in _files(folder / part, "*.mlir")[::step]
    )


def _parsed(text: str) -> Module | None:
    try:
        return parse(text)
    except trivium.Error:
        return None


def _conformance() -> Path | None:
    folder = os.environ.get("TRIVIUM_CONFORMANCE")
    return Path(folder) / "stablehlo" if folder else None


def _files(folder: Path, pattern: str, longest: int = LONGEST) -> list[Path]:
    return [path for path in sorted(folder.glob(pattern)) if path.stat().st_size <= longest]
