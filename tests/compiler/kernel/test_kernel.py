"""The kernel level: builder, printer, verifier, index analysis, sharing and schedules."""

from __future__ import annotations

import pytest

from trivium.compiler.kernel import (
    Access,
    Apply,
    Block,
    Buffer,
    Contraction,
    ContractionLoop,
    Kernel,
    KernelBuilder,
    Load,
    Loop,
    Store,
    Subscript,
    Value,
    contraction_kernel,
    expression,
    may_share,
)
from trivium.compiler.kernel.affine import Analysis, apart
from trivium.compiler.kernel.index import variable
from trivium.ir.errors import CompileError


def scaled(name: str = "scaled", factor: float = 2.0) -> Kernel:
    b = KernelBuilder(name)
    x, y = b.input("x", "f32", (4, 8)), b.output("y", "f32", (4, 8))
    with b.parallel(4, 8) as (i, j):
        b.store(y, b.multiply(b.load(x, i, j), factor), i, j)
    return b.build()


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


def test_constant_index_arithmetic_is_folded() -> None:
    b = KernelBuilder("fold")
    y = b.output("y", "f32", (100,))
    with b.parallel(4) as (i,):
        b.store(y, 1.0, i)
        assert b.add(b.multiply(i, 1), 0) is i
        assert b.position(expression([(i, 1)])) is i
        nine = b.add(b.multiply(b.index(4), 2), 1)
    analysis = Analysis(b.build())
    assert (analysis.form(nine).offset, analysis.form(nine).terms) == (9, {})


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


def test_numbers_in_index_expressions_are_seen_through() -> None:
    """A number that was computed from an expression is that expression where it is an index again."""
    b = KernelBuilder("through")
    x, y = b.input("x", "i64", (60,)), b.output("y", "i64", (10,))
    with b.parallel(10) as (i,):
        place = b.position(expression([(i, 2)], 1))
        b.store(y, b.add(b.load(x, place), place), i)
    lines = str(b.build()).splitlines()
    assert "    %1 = i0*2 + 1 : i64" in lines
    assert "    %2 = load x[i0*2 + 1] : i64" in lines


def verification_error(body: Block, *params: Buffer) -> str:
    with pytest.raises(CompileError) as error:
        Kernel("wrong", list(params), body).verify()
    assert "verifying kernel wrong" in str(error.value)
    return str(error.value)


def test_use_before_definition() -> None:
    x, y, i = Value("f32"), Value("f32"), Value("i64")
    out = Buffer("out", "f32", (1,), "out")
    assert "not defined before it" in verification_error(Block([], [Apply("negate", (x,), {}, y)]))
    assert "not defined before it" in verification_error(Block([], [Store(out, x, (expression([(i, 1)]),))]), out)


def test_types_of_operands() -> None:
    b = KernelBuilder("mixed")
    with pytest.raises(CompileError, match="operands have types f32, i32, expected equal types"):
        b.add(b.constant(1, "f32"), b.constant(1, "i32"))
    with pytest.raises(CompileError, match="tanh: operands have type i32"):
        b.apply("tanh", b.constant(1, "i32"))
    with pytest.raises(CompileError, match="'frobnicate' is not a scalar operation"):
        b.apply("frobnicate", b.constant(1, "i32"))


def test_accesses_are_checked() -> None:
    b = KernelBuilder("wrong")
    x, y = b.input("x", "f32", (4, 8)), b.output("y", "f32", (8,))
    b.store(y, b.load(x, 0), 0)
    with pytest.raises(CompileError, match="has 1 indices, expected 2"):
        b.build()
    b = KernelBuilder("wrong")
    x = b.input("x", "f32", (4,))
    b.store(x, 1.0, 0)
    with pytest.raises(CompileError, match="writes an input buffer"):
        b.build()


def test_reductions_need_an_associative_combiner() -> None:
    b = KernelBuilder("wrong")
    with b.reduction(4, inits=[b.constant(0.0, "f32")], combiner="subtract") as loop:
        loop.yield_(b.constant(1.0, "f32"))
    with pytest.raises(CompileError, match="subtract is not an associative operation"):
        b.build()


def test_linear_addresses() -> None:
    b = KernelBuilder("address")
    x, y = b.input("x", "f32", (4, 8)), b.output("y", "f32", (8, 4))
    with b.parallel(8, 4) as (i, j):
        b.store(y, b.load(x, expression([(j, -1)], 3), i), i, j)
    kernel = b.build()
    analysis = Analysis(kernel)
    (loop,) = (k for k in kernel.body.instructions if isinstance(k, Loop))
    (load,) = (k for k in loop.body.instructions if isinstance(k, Load))
    address = analysis.address(load.buffer, load.indices)
    assert (analysis.step(address, i), analysis.step(address, j), address.offset) == (1, -8, 24)


def test_sharing_wants_equal_indices() -> None:
    kernel = scaled()
    assert may_share(kernel, *kernel.params)
    b = KernelBuilder("transpose")
    x, y = b.input("x", "f32", (4, 4)), b.output("y", "f32", (4, 4))
    with b.parallel(4, 4) as (i, j):
        b.store(y, b.load(x, j, i), i, j)
    kernel = b.build()
    assert not may_share(kernel, x, y)


def matmul() -> Kernel:
    loops = (ContractionLoop("m", 4), ContractionLoop("n", 5), ContractionLoop("k", 6))
    a, w, out = Buffer("a", "f32", (4, 6), "in"), Buffer("w", "f32", (6, 5), "in"), Buffer("out", "f32", (4, 5), "out")
    m, n, k = map(variable, loops)
    lhs, rhs = Access(a, (Subscript(m), Subscript(k))), Access(w, (Subscript(k), Subscript(n)))
    b = KernelBuilder("epilogue")
    with b.block("f32", "i64", "i64") as epilogue:
        total, m, n = epilogue.parameters
        b.store(out, total, m, n)
    return contraction_kernel("matmul", [a, w, out], Contraction(loops, lhs, rhs, "f32", epilogue))


def test_contractions_carry_their_plain_meaning() -> None:
    kernel = matmul()
    assert kernel.contraction is not None
    assert "reduction" in str(kernel)
    assert "contraction (m4 n5 k6) a[l0, l2] * w[l2, l1] in f32" in str(kernel)


def test_padding_is_known_from_the_loops() -> None:
    loops = (ContractionLoop("m", 10), ContractionLoop("n", 1), ContractionLoop("k", 3))
    image = Buffer("image", "f32", (10,), "in")
    place, _, tap = map(variable, loops)
    assert not Access(image, (Subscript(place),)).padded(0)
    assert Access(image, (Subscript(place + tap - 1),)).padded(0)
    assert Access(image, (Subscript(place, dilation=2),)).padded(0)


def nests(*extents: int, last: str = "parallel") -> KernelBuilder:
    """A kernel with loops one after the other."""
    b = KernelBuilder("nests")
    x, y = b.input("x", "f32", (8,)), b.output("y", "f32", (8,))
    for extent in extents[:-1]:
        with b.parallel(extent) as (i,):
            b.store(y, b.load(x, i), i)
    if last == "parallel":
        with b.parallel(extents[-1]) as (i,):
            b.store(y, b.load(x, i), i)
    else:
        with b.sequential(extents[-1]) as loop:
            b.store(y, b.load(x, loop.index), loop.index)
    return b


def test_a_kernel_is_one_parallel_nest() -> None:
    nests(8).build()
    with pytest.raises(CompileError, match="the kernel has 2 parallel loops in a row, expected one around all"):
        nests(4, 8).build()
    with pytest.raises(CompileError, match=r"store of y\[8\] outside of the kernel's parallel loop"):
        nests(4, 8, last="sequential").build()
    with pytest.raises(CompileError, match=r"store of y\[8\] outside of the kernel's parallel loop"):
        nests(8, last="sequential").build()


def test_scratch_is_inside_the_nest() -> None:
    b = KernelBuilder("outside")
    y = b.output("y", "f32", (8,))
    scratch = b.scratch("f32", (8,))
    with b.parallel(8) as (i,):
        b.store(y, b.load(scratch, i), i)
    with pytest.raises(CompileError, match="scratch outside of the kernel's parallel loop"):
        b.build()


def updating(*places: str) -> tuple[KernelBuilder, Loop]:
    """An outer loop over i and j, an inner one over k, and an update at indices among i, j, k and a loaded one, at."""
    b = KernelBuilder("update")
    x, y = b.input("x", "i64", (4, 4)), b.inout("y", "f32", (4,) * len(places))
    with b.parallel(4, 4) as (i, j), b.parallel(4) as (k,):
        named = {"i": i, "j": j, "k": k, "at": b.load(x, i, j), "i+k": expression([(i, 1), (k, 1)])}
        b.update([(y, tuple(named[place] for place in places))], [b.constant(1.0, "f32")], "add")
    return b, b.body.instructions[0]  # type: ignore[return-value]


def test_iterations_that_update_different_elements() -> None:
    for places, outer, inner in (
        (("i", "j", "k"), {0, 1}, {0}),
        (("at", "j", "k"), {1}, {0}),
        (("i+k", "j"), {1}, {0}),
        (("i", "at"), {0}, set()),
        (("at",), set(), set()),
    ):
        b, loop = updating(*places)
        b.build()
        assert apart(loop) == outer
        assert apart(loop.body.instructions[-1]) == inner  # type: ignore[arg-type]
    (loop,) = (i for i in scaled().body.instructions if isinstance(i, Loop))
    assert apart(loop) == {0, 1}


def test_updates_are_checked_and_printed() -> None:
    b, _ = updating("i", "at")
    assert "      update y[i0, %3] with %4 by add" in str(b.build())
    b = KernelBuilder("wrong")
    y = b.output("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.update([(y, (i,))], [b.constant(1.0, "f32")], "add")
    with pytest.raises(CompileError, match="updates a buffer of mode out, expected inout or scratch"):
        b.build()
    b = KernelBuilder("wrong")
    y = b.inout("y", "f32", (4,))
    with b.parallel(4) as (i,):
        b.update([(y, (i,))], [b.constant(1.0, "f32")], "subtract")
    with pytest.raises(CompileError, match="subtract is not an associative operation"):
        b.build()
