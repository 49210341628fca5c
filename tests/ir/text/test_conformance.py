"""Round trips over all of StableHLO's own test programs, and comparisons with MLIR for each."""

import re

import pytest

from tests.ir.vectors import FOLDERS, UNVERIFIED, texts
from trivium.ir.equality import difference
from trivium.ir.errors import VerificationError
from trivium.ir.text import parse, print_module

EMPTY_SPLATS = {f"fft_{kind}_14_15_0_17" for kind in ("complex64", "float32", "float64")}
"""These contain splats of tensors without elements. MLIR prints the value of such a splat, although no element has
it."""


def test_all_vectors_are_present(conformance):
    names = [{name for name, _ in texts(conformance, folder)} for folder in FOLDERS]
    assert [len(found) for found in names] == [1753, 93, 292]


@pytest.mark.parametrize("folder", FOLDERS)
def test_round_trips(conformance, folder):
    """Each program is verified, printed, and read again as the same program, in the pretty and in the generic form."""
    broken = set()
    for name, text in texts(conformance, folder):
        module = parse(text, name)
        try:
            module.verify()
        except VerificationError:
            broken.add(name)
        printed = print_module(module)
        again = parse(printed)
        assert difference(again, module) == "", name
        assert print_module(again) == printed, name
        assert difference(parse(print_module(module, generic=True)), module) == "", name
    assert broken == (UNVERIFIED.keys() if folder == "testdata/dynamic" else set())


@pytest.mark.jax
@pytest.mark.parametrize("folder", FOLDERS)
def test_mlir_agrees(conformance, mlir, folder):
    """MLIR reads what we print as the same program, and prints the same text, character for character. Programs with
    ops that only StableHLO's own tools know are left out, because JAX's MLIR does not know them."""
    for name, text in texts(conformance, folder):
        if name in EMPTY_SPLATS or re.search(r'^ *"?check\.', text, re.MULTILINE):
            continue
        module = parse(text, name)
        printed, theirs = print_module(module), mlir(text)
        assert mlir(printed) == theirs, name
        assert _spaces(theirs) == _spaces(printed), name
        assert difference(parse(mlir(print_module(module, generic=True))), module) == "", name


def _spaces(text: str) -> str:
    """Removes double spaces: MLIR prints some where a keyword follows an operand."""
    return re.sub("  +", " ", text).strip()
