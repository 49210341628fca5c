"""Round trips over StableHLO's own test programs, and agreement with MLIR about each."""

import re

import pytest

from trivium.ir.equality import difference
from trivium.ir.errors import UnsupportedOpError
from trivium.ir.text import parse, print_module

EMPTY_SPLATS = {f"fft_{kind}_14_15_0_17.mlir" for kind in ("complex64", "float32", "float64")}
"""These hold the splat of a tensor without elements, which MLIR prints with the value that none of them has."""


def programs(conformance):
    """Every program all of whose ops are declared, with its name and text."""
    known = 0
    for path in sorted((conformance / "stablehlo" / "testdata").glob("*.mlir")):
        text = path.read_text()
        try:
            module = parse(text, path.name)
        except UnsupportedOpError:
            continue
        known += 1
        yield path.name, text, module
    assert known > 1700


def test_round_trips(conformance):
    for name, _, module in programs(conformance):
        text = print_module(module)
        assert difference(parse(text), module) == "", name
        assert print_module(parse(text)) == text, name
        assert difference(parse(print_module(module, generic=True)), module) == "", name


@pytest.mark.jax
def test_mlir_agrees(conformance, mlir):
    """MLIR reads what is printed here as the same program, and prints the same text, character for character."""
    for name, text, module in programs(conformance):
        printed = print_module(module)
        assert mlir(printed) == mlir(text) or name in EMPTY_SPLATS, name
        assert _spaces(mlir(text)) == _spaces(printed) or name in EMPTY_SPLATS, name
        assert difference(parse(mlir(print_module(module, generic=True))), module) == "", name


def _spaces(text: str) -> str:
    """MLIR writes some pairs of spaces where a keyword follows an operand."""
    return re.sub("  +", " ", text).strip()
