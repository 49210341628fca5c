"""Records with a number, an extent or a type changed at random (seeded), given to MLIR and to us. What MLIR accepts, we
read; what it refuses, we refuse; and where `verify` refuses a program that MLIR accepts, the broken constraint is one
that MLIR is known not to check."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from tests.ir.ops.laxer import accepted, ask
from tests.ir.ops.records import collect
from tests.ir.text.test_records import known_to_mlir
from trivium.ir.declare import Op
from trivium.ir.errors import Error, VerificationError
from trivium.ir.text import parse, print_module

pytestmark = pytest.mark.jax

CHANGED = 2000
ELEMENTS = [
    *(
        "f32",
        "f64",
        "f16",
        "bf16",
        "f8E4M3FN",
        "tf32",
        "i1",
        "i3",
        "i4",
        "i8",
        "i32",
        "i64",
        "si8",
        "ui8",
        "ui32",
        "ui64",
    ),
    *("complex<f32>", "complex<f16>", "index", "none"),
]
TYPES = [
    *("!stablehlo.token", "tuple<tensor<2xf32>>", "f32", "index", "tensor<f32>", "tensor<?x?xf32>", "tensor<0x3xf32>"),
    *("tensor<2x?xf32, #stablehlo.bounds<?, 3>>", "!stablehlo.future<tensor<f32>>"),
]
EXTENTS = ["?", "0", "1", "2", "3", "4"]
TENSOR = re.compile(r"tensor<[^<>]*(?:complex<\w+>)?[^<>]*>")
ELEMENT = re.compile(r"(?<=[x<])(complex<\w+>|(?:ui|si|i|f|bf|tf)\d\w*)(?=[>,])")
EXTENT = re.compile(r"(?<=[<x])(\d+|\?)(?=x)")
NUMBER = re.compile(r"(?<![\w.%#@^])-?\d+(?![\w.])")
NUMBERS = re.compile(r"(?<=: )-?\d+(, -?\d+)*(?=>)|(?<=\[)-?\d+(, -?\d+)*(?=\])")


def changed() -> Iterator[tuple[type[Op], str]]:
    """Yields programs of one op with one change: in one position, or wherever the same text occurs."""
    generator = random.Random(0)
    programs = [
        (record.op, print_module(record.module(), generic=True))
        for record in collect()
        if known_to_mlir(record) and "algorithm" not in record.attributes
    ]
    while True:
        op, text = generator.choice(programs)
        pattern, others = generator.choice(
            [(ELEMENT, ELEMENTS), (EXTENT, EXTENTS), (TENSOR, TYPES), (NUMBER, ["-1", *EXTENTS[1:]]), (NUMBERS, [])]
        )
        places = list(pattern.finditer(text))
        if not places:
            continue
        place = generator.choice(places)
        numbers = place[0].split(", ")
        new = generator.choice(others or [", ".join(numbers[1:]), ", ".join(numbers[::-1]), f"{place[0]}, 1"])
        everywhere = pattern is not NUMBER and generator.random() < 0.5
        yield op, text.replace(place[0], new) if everywhere else text[: place.start()] + new + text[place.end() :]


def refused(text: str) -> str | None:
    """Returns the label of the constraint for which a program is refused (empty if that has no label); `None` if the
    program is valid."""
    try:
        parse(text).verify()
    except Error as error:
        return error.label if isinstance(error, VerificationError) else ""
    return None


def is_laxer(op: type[Op], label: str) -> bool:
    """Whether MLIR is known not to check a constraint of an op, or of its family."""
    family = [base for base in op.__mro__ if issubclass(base, Op) and base is not Op]
    return any(other == label and any(issubclass(lax, base) for base in family) for lax, other in accepted())


def test_mlir_agrees() -> None:
    pytest.importorskip("jaxlib.mlir.ir")
    programs = [program for program, _ in zip(changed(), range(CHANGED), strict=False)]
    taken = 0
    for (op, text), fine in zip(programs, ask([text for _, text in programs]), strict=True):
        label = refused(text)
        if fine:
            taken += 1
            parse(text)
            assert label is None or is_laxer(op, label), text
        else:
            assert label is not None, text
    assert taken > CHANGED // 20
