"""Every constraint has a negative test: those that the specification numbers, and those in the source of an op. Which
constraints a test breaks is recorded while it runs (`tests.ir.ops.constraints`), regardless of its name."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import defaultdict
from contextlib import suppress

import pytest

from tests.ir.ops.constraints import broken
from tests.ir.ops.specification import CONSTRAINTS
from trivium.ir import ops
from trivium.ir.attributes import UNIT, DenseArray, Dictionary, Float, Integer
from trivium.ir.codecs import decode
from trivium.ir.declare import OPS, Op
from trivium.ir.errors import VerificationError
from trivium.ir.types import F32, I32, I64

LABEL = re.compile(r"[CIO]\d+")


def labels_of(node: ast.AST, functions: dict[str, ast.FunctionDef], seen: frozenset[str] = frozenset()) -> set[str]:
    """Returns the labels in a piece of source, and in the functions of the same file that it names."""
    found = set()
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and LABEL.fullmatch(part.value):
            found.add(part.value)
        elif isinstance(part, ast.Name) and part.id in functions and part.id not in seen:
            found |= labels_of(functions[part.id], functions, seen | {part.id})
    return found


def broken_labels() -> dict[type[Op], set[str]]:
    found: dict[type[Op], set[str]] = defaultdict(set)
    for each in broken():
        found[type(each.op)].add(each.label)
    return found


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_every_constraint_of_the_specification_is_held(name: str) -> None:
    wanted = {f"C{number + 1}" for number in range(CONSTRAINTS[name])}
    assert sorted(wanted - broken_labels()[OPS[f"stablehlo.{name}"]]) == []


FAMILIES = sorted({cls.__module__ for cls in OPS.values() if cls.__module__.startswith(ops.__name__)})


@pytest.mark.parametrize("family", FAMILIES)
def test_every_constraint_in_the_source_has_a_test(family: str) -> None:
    """The constraint of a class without an op name is tested by any op of that class."""
    module = sys.modules[family]
    tree = ast.parse(inspect.getsource(module))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    have = broken_labels()
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and issubclass(cls := getattr(module, node.name), Op):
            tested = set().union(*(labels for op, labels in have.items() if issubclass(op, cls)))
            assert sorted(labels_of(node, functions) - tested) == [], node.name


WRONG = [Dictionary(), "text", Integer(-1, I64), Float(0.5, F32), UNIT, (Integer(1, I32),), DenseArray(F32, (1.0,))]


@pytest.mark.parametrize("cls", sorted(OPS.values(), key=lambda cls: cls.NAME), ids=lambda cls: cls.NAME)
def test_attributes_of_another_kind_are_refused(cls: type[Op]) -> None:
    """The specification's inputs that are constants: each wrong value is either converted to the declared kind, or
    refused with an error that names the attribute."""
    for field in cls.ATTRIBUTES:
        refused = 0
        for wrong in WRONG:
            with suppress(VerificationError):
                decode(field.codec, cls.NAME, field.name, wrong)
                continue
            refused += 1
        assert refused >= len(WRONG) - 1 or field.codec.what == "attribute", field.name
