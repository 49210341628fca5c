"""Kernels as text, and the digest that equal kernels share."""

from __future__ import annotations

from tests.compiler.kernel.kernels import matmul, scaled
from trivium.compiler.kernel import (
    KernelBuilder,
    expression,
    walk,
)
from trivium.compiler.kernel.printer import printed


def test_text() -> None:
    assert str(scaled()).splitlines() == [
        "kernel @scaled {",
        "  in x: 4x8xf32",
        "  out y: 4x8xf32",
        "  parallel (i0, i1) < (4, 8) {",
        "    %2 = load x[i0, i1] : f32",
        "    %3 = 2.0 : f32",
        "    %4 = multiply %2, %3 : f32",
        "    store %4, y[i0, i1]",
        "  }",
        "}",
    ]


def test_digests_ignore_names_only() -> None:
    assert scaled("a").digest() == scaled("b").digest()
    assert scaled(factor=2.0).digest() != scaled(factor=3.0).digest()


def test_loads_and_stores_print_index_expressions() -> None:
    b = KernelBuilder("strided")
    x, y = b.input("x", "f32", (60,)), b.output("y", "f32", (5, 6))
    with b.parallel(5, 6) as (i, j):
        place = expression([(i, 6), (j, 1)])
        b.store(y, b.load(x, place * 2 - 1), (place + 3) // 6, place % 6)
    assert str(b.build()).splitlines()[4:6] == [
        "    %2 = load x[i0*12 + i1*2 - 1] : f32",
        "    store %2, y[i0 + (i1 + 3)//6, i1%6]",
    ]


def test_contractions_are_part_of_the_digest() -> None:
    plain = matmul()
    plain.contraction = None
    assert plain.digest() != matmul().digest()
    assert matmul().digest() == matmul().digest()


def test_literals_are_exact() -> None:
    """Kernels with NaNs of different bits are different."""
    texts = set()
    for literal in (0.1, -0.0, 0.0, float("nan"), -float("nan"), float("inf")):
        b = KernelBuilder("literal")
        b.store(b.output("y", "f64", ()), literal)
        texts.add(str(b.build()))
    assert len(texts) == 6


def test_views_print_their_strides() -> None:
    b = KernelBuilder("view")
    x = b.input("x", "f32", (4,), strides=(2,), offset=1)
    y = b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.store(y, b.load(x, i), i)
    assert "  in x: 4xf32 strides [2] offset 1" in str(b.build())


def test_nested_blocks_are_indented() -> None:
    b = KernelBuilder("nested")
    x, y = b.input("x", "i1", (4,)), b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        with b.if_(b.load(x, i)) as branch:
            branch.yield_(b.constant(1.0, "f32"))
        with branch.otherwise():
            branch.yield_(b.constant(2.0, "f32"))
        b.store(y, branch.results[0], i)
    assert str(b.build()).splitlines()[5:11] == [
        "    %2 = if %1 {",
        "      %3 = 1.0 : f32",
        "      yield %3",
        "    } else {",
        "      %4 = 2.0 : f32",
        "      yield %4",
    ]


def test_instructions_have_lines() -> None:
    kernel = matmul()
    lines, places = printed(kernel)
    assert lines == str(kernel).splitlines()
    assert set(places) == {instruction for block in kernel.blocks() for instruction in walk(block)}
    for instruction, place in places.items():
        assert ("{" in lines[place.start]) == (len(place) > 1) == bool(instruction.blocks)
        assert all(place.start < places[inner].start < place.stop for b in instruction.blocks for inner in walk(b))
