"""Every hand-written case is what MLIR reads and writes too."""

import pytest

from tests.ir.text.test_forms import FORMS, function
from trivium.ir.equality import difference
from trivium.ir.text import parse, print_module

pytestmark = pytest.mark.jax

# Programs that break a rule of an op: MLIR verifies what it reads.
BROKEN = {"call", "while", "composite", "custom_call", "tuple", "reduce with a region"}


@pytest.mark.parametrize("name", [name for name in FORMS if name not in BROKEN])
def test_form(name, mlir):
    module = parse(function(*FORMS[name]))
    for text in (print_module(module), print_module(module, generic=True), print_module(module, locations=True)):
        assert difference(parse(mlir(text)), module) == ""
