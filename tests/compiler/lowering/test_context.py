"""Elements in lowering rules: which are computed only once and when they are forgotten, how buffers are indexed, and
what the resulting kernels compute."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import pytest

from tests.compiler.fusion.forms.members import ops_of
from trivium.compiler.kernel import Apply, Kernel, Load, Loop, Store, walk
from trivium.compiler.kernel.affine import divisions
from trivium.compiler.kernel.dtypes import numpy_dtype
from trivium.compiler.kernel.interpreter import run
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.index import Index, Variable, constant, fresh, indices_of, variable
from trivium.compiler.lowering.launches import Temporary
from trivium.ir import ops
from trivium.ir.attributes import DenseElements
from trivium.ir.errors import CompileError
from trivium.ir.types import C64, I1, tensor

N = 6
X = np.arange(24, dtype=np.float32)


def members() -> dict:
    def body(b, x, z, p):
        negated = b.add(ops.Negate(x))
        return {
            "negate": negated,
            "add": b.add(ops.Add(negated, b.add(ops.Abs(negated)))),
            "conj": b.add(ops.Conj(z)),
            "sort": b.add(ops.Fft(z, fft_type=ops.FftType.FFT, fft_length=(2,))),
            "splat": b.add(ops.Multiply(x, b.add(ops.Constant(DenseElements.splat(np.float32(2), x.type))))),
            "select": b.add(ops.Select(p, x, negated)),
        }

    return ops_of([tensor(4, N), tensor(3, 2, of=C64), tensor(4, N, of=I1)], body)


OPS = members()
NEGATE, ADD = OPS["negate"], OPS["add"]
ALL = [NEGATE, ADD, ADD.operands[1].defining_op]
(x,) = NEGATE.operands
(result,) = NEGATE.results


def count(kernel: Kernel, kind: type) -> int:
    return sum(isinstance(instruction, kind) for instruction in walk(kernel.body))


def computed(ctx: LoweringContext, *arrays: np.ndarray, size: int = 24) -> np.ndarray:
    """Returns what the kernel writes to its output."""
    out = np.zeros(size, np.float32)
    run(ctx.b.build(), [*arrays, out])
    return out


def test_an_element_is_computed_once_in_a_block() -> None:
    ctx, loops = LoweringContext("k", ALL), fresh((4, N))
    with ctx.parallel(loops):
        at = indices_of(loops)
        ctx.store(ADD.results[0], at, ctx.element(ADD.results[0], at))
    kernel = ctx.b.build()
    assert (count(kernel, Load), count(kernel, Apply)) == (1, 3)
    assert ctx.arguments == [x, ADD.results[0]]
    np.testing.assert_array_equal(computed(ctx, X), -X + np.abs(X))


def test_what_is_no_member_is_loaded() -> None:
    ctx, loops = LoweringContext("k", [ADD]), fresh((4, N))
    with ctx.parallel(loops):
        ctx.store(ADD.results[0], indices_of(loops), ctx.element(ADD.results[0], indices_of(loops)))
    assert ctx.arguments == [NEGATE.results[0], ADD.operands[1], ADD.results[0]]
    np.testing.assert_array_equal(computed(ctx, X, X * 2), X * 3)


def test_scopes_forget() -> None:
    """An element that was loaded inside a block is loaded again after it; one that was loaded before the block is
    reused inside."""
    ctx, at = LoweringContext("k"), (constant(1), constant(2))
    with ctx.scope():
        inside = ctx.element(x, at)
        assert ctx.element(x, at) is inside
    outside = ctx.element(x, at)
    assert outside is not inside
    with ctx.scope():
        assert ctx.element(x, at) is outside


def test_positions_are_computed_once_in_a_block() -> None:
    ctx, (i,) = LoweringContext("k"), fresh((5,))
    with ctx.parallel([i]):
        place = variable(i) * 3 + 1
        with ctx.scope():
            inside = ctx.position(place)
            assert ctx.position(variable(i) + variable(i) * 2 + 1) is inside
        assert ctx.position(place) is not inside


def test_a_loop_variable_ends_with_its_loop() -> None:
    ctx, (i,) = LoweringContext("k"), fresh((5,))
    with ctx.parallel([i]):
        ctx.element(x, (constant(0), variable(i)))
    with pytest.raises(CompileError, match="a kernel uses a loop variable outside its loop"):
        ctx.element(x, (constant(0), variable(i)))


def test_a_range_ends_with_its_scope_and_where_its_variable_is_bound_again() -> None:
    """In the first half of 8 numbers, their quotient by 4 is 0; a loop inside runs over all of them again."""
    v = Variable(8)
    ctx = LoweringContext("ranges", ALL)
    place = variable(v) // 4, constant(0)
    with ctx.nest([v]):
        with ctx.scope():
            ctx.narrow(variable(v), 0, 3)
            ctx.load(x, place)
            with ctx.parallel([v]):
                ctx.load(x, place)
        ctx.load(x, place)
    loads = [i for i in walk(ctx.b.body) if isinstance(i, Load)]
    assert [len(list(divisions(load))) for load in loads] == [0, 1, 1]


def test_a_scope_ends_with_an_error_too() -> None:
    ctx, (i,) = LoweringContext("k"), fresh((5,))
    with contextlib.suppress(KeyError), ctx.scope():
        ctx.bind(i, constant(3))
        raise KeyError
    with pytest.raises(CompileError, match="outside its loop"):
        ctx.position(variable(i))


def test_variables_may_be_bound_to_expressions() -> None:
    """The expressions consist of the kernel's values."""
    ctx, (row, column) = LoweringContext("k"), fresh((4, N))
    with ctx.b.parallel(24) as (i,), ctx.scope():
        ctx.bind(row, variable(i) // N)
        ctx.bind(column, variable(i) % N)
        at = variable(row), variable(column)
        ctx.store(result, at, ctx.element(x, at))
    np.testing.assert_array_equal(computed(ctx, X), X)


def test_redirected_elements_are_read_from_their_new_position() -> None:
    """Only at exactly these indices, and without being computed again."""
    ctx, (i, j) = LoweringContext("k", ALL), fresh((4, N))
    with ctx.parallel([i]):
        row = ctx.scratch(result.type.element_type, (N,))
        with ctx.inside(ctx.b.sequential(N), [j]):
            ctx.write(row, (variable(j),), ctx.b.constant(7.0, "f32"))
        ctx.redirect(result, indices_of((i, j)), row, (variable(j),))
        with ctx.inside(ctx.b.sequential(N), [j]):
            stands = ctx.element(result, indices_of((i, j)))
            assert ctx.element(result, indices_of((i, j))) is stands
            other = ctx.element(result, (variable(i), constant(0)))
            ctx.store(ADD.results[0], indices_of((i, j)), ctx.b.add(stands, other))
    np.testing.assert_array_equal(computed(ctx, X), np.repeat(7 - X.reshape(4, N)[:, :1], N, 1).reshape(-1))


def test_splats_are_literals() -> None:
    op = OPS["splat"]
    ctx = LoweringContext("k", [op])
    ctx.store(op.results[0], (constant(0), constant(3)), ctx.element(op.results[0], (constant(0), constant(3))))
    assert ctx.arguments == [x, op.results[0]]
    assert computed(ctx, X)[3] == 6


def test_complex_elements_are_pairs() -> None:
    op, loops = OPS["conj"], fresh((3, 2))
    ctx = LoweringContext("k", [op])
    with ctx.parallel(loops):
        at = indices_of(loops)
        real, imaginary = ctx.element(op.results[0], at)
        ctx.store(op.results[0], at, (real, imaginary))
    assert [param.shape for param in ctx.b.build().params] == [(3, 2, 2)] * 2
    z = X[:12].view(np.complex64)
    np.testing.assert_array_equal(computed(ctx, X[:12], size=12).view(np.complex64), z.conj())
    with pytest.raises(AssertionError, match="has complex elements"):
        LoweringContext("k").real(op.operands[0], (constant(0), constant(0)))


def test_ops_without_a_rule_for_elements() -> None:
    (value,) = OPS["sort"].results
    with pytest.raises(CompileError, match=r"stablehlo\.fft cannot be computed inside a kernel"):
        LoweringContext("k", [OPS["sort"]]).element(value, (constant(0), constant(0)))


def seen(shape: tuple[int, ...], build: Callable[..., tuple[Index, ...]], *extents: int) -> tuple:
    """Returns the shape with which a buffer is accessed, and the number of its indices."""
    ctx = LoweringContext("k")
    value = Temporary(tensor(*shape), NEGATE)
    loops = fresh(extents)
    with ctx.parallel(loops):
        ctx.load(value, build(*map(variable, loops)))
    kernel = ctx.b.build()
    (load,) = (instruction for instruction in walk(kernel.body) if isinstance(instruction, Load))
    return kernel.params[0].shape, len(load.indices)


@pytest.mark.parametrize(
    ("shape", "build", "extents", "wanted"),
    [
        ((4, 6), lambda i, j: (i, j), (4, 6), (4, 6)),
        # Quotient and remainder of the same position are that position.
        ((4, 6), lambda i: (i // 6, i % 6), (24,), (24,)),
        ((2, 4, 6), lambda k, i: (k, i // 6, i % 6), (2, 24), (2, 24)),
        ((4, 6, 5), lambda i, k: (i // 6, i % 6, k), (24, 5), (24, 5)),
        ((2, 3, 4), lambda i: (i // 12, i // 4 % 3, i % 4), (24,), (24,)),
        # Those of different positions are not.
        ((4, 6), lambda i: (i // 6, (i + 1) % 6), (24,), (4, 6)),
        ((6, 4), lambda i: (i % 6, i // 6), (24,), (6, 4)),
        # A dimension of one element needs no index.
        ((1, 6, 1), lambda j: (constant(0), j, constant(0)), (6,), (6,)),
        ((4, 1, 6), lambda i: (i // 6, constant(0), i % 6), (24,), (24,)),
        ((1, 1), lambda: (constant(0), constant(0)), (), ()),
    ],
)
def test_neighbouring_dimensions_are_merged(shape: tuple, build: Callable, extents: tuple, wanted: tuple) -> None:
    """If that makes the indices simpler."""
    assert seen(shape, build, *extents) == (wanted, len(wanted))


def test_two_views_of_a_value_are_two_parameters() -> None:
    ctx, (i, j, k) = LoweringContext("k"), fresh((4, N, 24))
    with ctx.parallel([i, j]):
        one = ctx.element(x, indices_of((i, j)))
        assert ctx.element(x, indices_of((i, j))) is one
        with ctx.inside(ctx.b.sequential(24), [k]):
            ctx.element(x, (variable(k) // N, variable(k) % N))
    assert (ctx.arguments, [param.shape for param in ctx.b.params]) == ([x, x], [(4, N), (24,)])
    assert [param.name for param in ctx.b.params] == ["x0", "x1"]


def test_what_was_written_before_is_updated() -> None:
    """A value that an earlier launch, or this kernel itself, has written."""
    at = constant(0), constant(1)
    ctx = LoweringContext("k", written={result})
    ctx.store(result, at, ctx.b.constant(1.0, "f32"))
    ctx.store(ADD.results[0], at, ctx.b.constant(2.0, "f32"))
    assert [(param.name, param.mode) for param in ctx.b.params] == [("z0", "inout"), ("y0", "out")]
    assert (ctx.is_written(result), ctx.is_written(x)) == (True, False)
    assert ctx.written_place(result)[0] is ctx.b.params[0]


@pytest.mark.parametrize(
    ("shape", "loops", "nests"), [((4, N), [4, N], 1), ((1, 1), [], 0), ((1, N), [N], 1), ((), [], 0)], ids=str
)
def test_nests_loop_over_what_has_several_values(shape: tuple[int, ...], loops: list[int], nests: int) -> None:
    """A kernel of scalars has no loops."""
    ctx, value, space = LoweringContext("k"), Temporary(tensor(*shape), NEGATE), fresh(shape)
    with ctx.nest(space):
        ctx.store(value, indices_of(space), ctx.b.constant(3.0, "f32"))
    kernel = ctx.b.build()
    found = [loop for loop in walk(kernel.body) if isinstance(loop, Loop)]
    assert [extent for loop in found for extent in loop.extents] == loops
    assert (len(found), count(kernel, Store)) == (nests, 1)
    assert (computed(ctx, size=int(np.prod(shape))) == 3).all()


def test_a_kernel_of_scalars_with_loops_has_one_iteration() -> None:
    ctx, (j,), value = LoweringContext("k"), fresh((5,)), Temporary(tensor(5), NEGATE)
    with ctx.nest([]), ctx.inside(ctx.b.sequential(5), [j]):
        ctx.store(value, (variable(j),), ctx.b.constant(3.0, "f32"))
    outer, inner = (loop for loop in walk(ctx.b.build().body) if isinstance(loop, Loop))
    assert (outer.kind, tuple(outer.extents), inner.kind) == ("parallel", (1,), "sequential")


@pytest.mark.parametrize("pair", [False, True])
def test_only_one_of_two_is_computed(pair: bool) -> None:
    """Elements that were loaded there are not reused afterwards."""
    op = OPS["select"]
    (predicate, *_), ctx, loops = op.operands, LoweringContext("k", ALL), fresh((4, N))
    with ctx.parallel(loops):
        at = indices_of(loops)

        def side(value) -> Callable:
            scalar = lambda: ctx.element(value, at)  # noqa: E731
            return (lambda: (scalar(), scalar())) if pair else scalar

        chosen = ctx.choose(ctx.element(predicate, at), side(x), side(result))
        ctx.store(op.results[0], at, chosen[1] if pair else chosen)
        ctx.element(x, at)
    # Before the choice, in each of its branches, and after it.
    assert count(ctx.b.build(), Load) == 4
    flags = X % 2 == 0
    np.testing.assert_array_equal(computed(ctx, flags, X), np.where(flags, X, -X))


STARTS = ("i8 5 1", "i8 128 1", "i8 129 1", "i32 5 2", "i64 1 1", "ui8 256 1", "ui8 1000 1", "ui32 5 1", "ui64 5 5")
"""The types of places, the extents of arrays, and the sizes of slices of these."""


@pytest.mark.parametrize("case", STARTS)
def test_starts_from_outside_are_clamped(case: str) -> None:
    """So that a slice that starts there fits, for any number."""
    dtype, *sizes = case.split()
    (extent, size), numpy = map(int, sizes), numpy_dtype(dtype)
    limits = np.iinfo(numpy)
    numbers = np.array([limits.min, 0, 1, 3, 4, 5, limits.max - 1, limits.max], numpy)
    ctx, (i,) = LoweringContext("k"), fresh((len(numbers),))
    source, out = ctx.b.input("n", dtype, (len(numbers),)), ctx.b.output("y", "i64", (len(numbers),))
    with ctx.parallel([i]):
        start = ctx.known(ctx.read(source, (variable(i),)), extent, size)
        assert start.range == (0, extent - size)
        ctx.write(out, (variable(i),), ctx.position(start))
    found = np.zeros(len(numbers), np.int64)
    run(ctx.b.build(), [numbers, found])
    wanted = [min(max(int(number), 0), extent - size) for number in numbers]
    np.testing.assert_array_equal(found, wanted)


def test_unbound_variables_are_refused() -> None:
    with pytest.raises(CompileError, match="outside its loop"):
        LoweringContext("k").position(variable(Variable(3)))
