"""Round trips over all of StableHLO's own test programs, and agreement with MLIR about each."""

import re

import pytest

from tests.ir.vectors import FOLDERS, UNVERIFIED, texts
from trivium.ir.equality import difference
from trivium.ir.errors import VerificationError
from trivium.ir.text import parse, print_module

EMPTY_SPLATS = {f"fft_{kind}_14_15_0_17" for kind in ("complex64", "float32", "float64")}
"""These hold the splat of a tensor without elements, which MLIR prints with the value that none of them has."""


def test_the_vectors_are_all_there(conformance):
    names = [{name for name, _ in texts(conformance, folder)} for folder in FOLDERS]
    assert [len(found) for found in names] == [1753, 93, 292]


@pytest.mark.parametrize("folder", FOLDERS)
def test_round_trips(conformance, folder):
    """Each is verified, printed and read again as the same program, in the pretty and in the generic form."""
    broken = set()
    for name, text in texts(conformance, folder):
        module = parse(text, name)
        try:
            module.verify()
        except VerificationError:
            broken.add(name)
        printed = print_module(module)
        assert difference(parse(printed), module) == "", name
        assert print_module(parse(printed)) == printed, name
        assert difference(parse(print_module(module, generic=True)), module) == "", name
    assert broken == (UNVERIFIED.keys() if folder == "testdata/dynamic" else set())


@pytest.mark.jax
@pytest.mark.parametrize("folder", FOLDERS)
def test_mlir_agrees(conformance, mlir, folder):
    """MLIR reads what is printed here as the same program, and prints the same text, character for character. Programs
    of ops that only StableHLO's own tools know are left out: JAX's MLIR does not know them."""
    for name, text in texts(conformance, folder):
        if name in EMPTY_SPLATS or re.search(r'^ *"?check\.', text, re.MULTILINE):
            continue
        module = parse(text, name)
        printed, theirs = print_module(module), mlir(text)
        assert mlir(printed) == theirs, name
        assert _spaces(theirs) == _spaces(printed), name
        assert difference(parse(mlir(print_module(module, generic=True))), module) == "", name


def _spaces(text: str) -> str:
    """MLIR writes some pairs of spaces where a keyword follows an operand."""
    return re.sub("  +", " ", text).strip()
