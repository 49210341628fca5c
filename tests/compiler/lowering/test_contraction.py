"""Matrix products and convolutions in any form: as a kernel that uses the mark, as its loop nest, and as a plain sum
inside a kernel, all compute what the op means. Small whole numbers are summed exactly, in any order."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.compiler.fusion.forms.members import ops_of
from tests.compiler.lowering.interpreted import expect_same, function
from tests.compiler.lowering.running import program_of
from tests.compiler.targets import TARGET
from trivium.compiler.interpreter import interpret
from trivium.compiler.kernel.interpreter import run
from trivium.compiler.lower import lower
from trivium.compiler.lowering.context import LoweringContext
from trivium.compiler.lowering.contraction import is_markable, loops_of, operand_order, rounds
from trivium.compiler.lowering.index import fresh, indices_of
from trivium.compiler.verifier import verify
from trivium.ir import ops
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.types import BF16, C64, F16, F32, F64, I1, I8, I32, TensorType, Type, accumulation_type, tensor

KINDS: list[tuple[Type, Type]] = [(F32, F32), (I8, I32), (BF16, BF16), (F16, F32), (F64, F64), (I1, I1), (C64, C64)]


def numbers(kind: TensorType, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind.dtype.kind == "b":
        return rng.integers(0, 2, kind.static_shape).astype(np.bool_)
    values = rng.integers(-2, 3, kind.static_shape)
    return (values + 1j * rng.integers(-2, 3, kind.static_shape) if kind.dtype.kind == "c" else values).astype(
        kind.dtype
    )


def plain(module: Module, arrays: list[np.ndarray]) -> np.ndarray:
    """Computes the only op as a sum inside a kernel, for every element of its result."""
    op, _ = module.main.body.block
    (result,) = op.results
    ctx, space = LoweringContext("plain", [op]), fresh(result.type.static_shape)
    with ctx.nest(space):
        ctx.store(result, indices_of(space), ctx.element(result, indices_of(space)))
    found = np.zeros(result.type.static_shape, result.type.dtype)
    memory = dict(zip(op.operands, arrays, strict=True)) | {result: found}
    flat = [memory[argument].reshape(-1) for argument in ctx.arguments]
    run(ctx.b.build(), [each.view(each.real.dtype) if each.dtype.kind == "c" else each for each in flat])
    return found


def agree(module: Module) -> None:
    """Computes the contraction in every way."""
    arrays = [numbers(kind, seed) for seed, kind in enumerate(module.main.function_type.inputs)]
    program = lower(module, TARGET)
    verify(program)
    (wanted,) = evaluate(module, *arrays)
    ways = [interpret(program, *arrays)[0], interpret(program, *arrays, marks=True)[0], plain(module, arrays)]
    for found in ways:
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(found.astype(wanted.dtype), wanted)


def product(seed: int) -> Module:
    """Two tensors of random ranks, with their dimensions in random order."""
    rng = np.random.default_rng(seed)
    operand, result = KINDS[seed % len(KINDS)]
    batch, inner = (rng.integers(1, 4, rng.integers(0, 3)).tolist() for _ in "bk")
    sides = []
    for _ in "mn":
        free = rng.integers(1, 4, rng.integers(0, 3)).tolist()
        order = rng.permutation(len(batch) + len(inner) + len(free)).tolist()
        extents = [*batch, *inner, *free]
        shape = tuple(extents[each] for each in order)
        where = [order.index(each) for each in range(len(batch) + len(inner))]
        sides.append((shape, where[: len(batch)], where[len(batch) :]))
    (lhs, *left), (rhs, *right) = sides
    dimensions = ops.DotDimensionNumbers(tuple(left[0]), tuple(right[0]), tuple(left[1]), tuple(right[1]))
    taken = [set([*one, *two]) for one, two in (left, right)]
    kept = [
        extent for shape, gone in zip((lhs, rhs), taken, strict=True) for d, extent in enumerate(shape) if d not in gone
    ]
    kind = tensor(*batch, *kept, of=result)
    types = [tensor(*lhs, of=operand), tensor(*rhs, of=operand)]
    return program_of(types, lambda b, x, y: b.add(ops.DotGeneral(x, y, dimensions, result=kind)))


@pytest.mark.parametrize("seed", range(42))
def test_random_products(seed: int) -> None:
    agree(product(seed))


def places(rng: np.random.Generator, space: int) -> tuple[int, int, tuple[int, ...]]:
    first, second, *rest = rng.permutation(space + 2).tolist()
    return first, second, tuple(rest)


def arranged(where: tuple[int, int, tuple[int, ...]], first: int, second: int, rest: list[int]) -> tuple[int, ...]:
    """Returns a shape with these extents at these positions."""
    shape = dict(zip((where[0], where[1], *where[2]), (first, second, *rest), strict=True))
    return tuple(shape[d] for d in range(len(shape)))


def convolution(seed: int) -> Module:
    """Groups, strides, dilations, reversals, paddings of both signs, and dimensions in any order."""
    rng = np.random.default_rng(seed)
    operand, result = KINDS[seed % len(KINDS)]
    space = int(rng.integers(0, 3))
    by_features = bool(rng.random() < 0.5)
    groups = int(rng.integers(1, 4))
    features, batches = (groups, 1) if by_features else (1, groups)
    lhs_at, rhs_at, out_at = (places(rng, space) for _ in range(3))
    sizes, taps = rng.integers(3, 6, space).tolist(), rng.integers(1, 4, space).tolist()
    inputs, kernels, images = (int(n) for n in rng.integers(1, 3, 3))
    lhs = arranged(lhs_at, images * batches, inputs * features, sizes)
    rhs = arranged(rhs_at, inputs, kernels * groups, taps)
    attributes = {
        "window_strides": rng.integers(1, 3, space).tolist(),
        "padding": rng.integers(-1, 3, (space, 2)).tolist(),
        "lhs_dilation": rng.integers(1, 3, space).tolist(),
        "rhs_dilation": rng.integers(1, 3, space).tolist(),
        "window_reversal": (rng.random(space) < 0.5).tolist(),
        "dimension_numbers": ops.ConvDimensionNumbers(*lhs_at, *rhs_at, *out_at),
        "feature_group_count": features,
        "batch_group_count": batches,
    }

    def body(b, x, kernel):
        inferred = ops.Convolution(x, kernel, **attributes).result.type
        return b.add(ops.Convolution(x, kernel, **attributes, result=inferred.with_element(result)))

    return program_of([tensor(*lhs, of=operand), tensor(*rhs, of=operand)], body)


@pytest.mark.parametrize("seed", range(42))
def test_random_convolutions(seed: int) -> None:
    agree(convolution(seed))


@pytest.mark.parametrize("extents", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0)])
def test_empty_products(extents: tuple[int, int, int]) -> None:
    """An empty sum is zero."""
    m, k, n = extents
    numbers_ = ops.DotDimensionNumbers((), (), (1,), (0,))
    agree(program_of([tensor(m, k), tensor(k, n)], lambda b, x, y: b.add(ops.DotGeneral(x, y, numbers_))))


def members() -> dict:
    def body(b, x, z, p):
        turned = b.add(ops.Transpose(b.add(ops.Transpose(x, (1, 2, 0))), (0, 2, 1)))
        dot = ops.DotDimensionNumbers((0,), (0,), (2,), (2,))
        rounded = ops.DotAlgorithm(BF16, BF16, F32, 1, 1, 1, False)
        exact = ops.DotAlgorithm(F32, F32, F32, 1, 1, 1, False)
        return {
            "turned": turned,
            "dot": b.add(ops.DotGeneral(x, x, dot)),
            "rounded": b.add(ops.DotGeneral(x, x, dot, algorithm=rounded)),
            "exact": b.add(ops.DotGeneral(x, x, dot, algorithm=exact)),
            "complex": b.add(ops.DotGeneral(z, z, dot)),
            "boolean": b.add(ops.DotGeneral(p, p, dot)),
        }

    return ops_of([tensor(2, 3, 4), tensor(2, 3, 4, of=C64), tensor(2, 3, 4, of=I1)], body)


OPS = members()


def test_loops_are_named_for_their_roles() -> None:
    loops = loops_of(OPS["dot"])
    assert {name: (loop.role, loop.extent) for name, loop in loops.loops.items()} == {
        "batch0": ("batch", 2), "m1": ("m", 3), "n1": ("n", 3), "k0": ("k", 4),
    }  # fmt: skip
    assert loops.result == (("batch0",), ("m1",), ("n1",))


def test_transposes_are_seen_through() -> None:
    """Dimension d of the underlying tensor is dimension `order[d]` of the operand."""
    (turned,) = OPS["turned"].results
    source, order = operand_order(turned)
    assert source is OPS["dot"].operands[0]
    array = np.arange(24).reshape(2, 3, 4)
    operand = array.transpose(1, 2, 0).transpose(0, 2, 1)
    np.testing.assert_array_equal(operand.transpose(order), array)
    assert operand_order(source) == (source, (0, 1, 2))


@pytest.mark.parametrize(
    ("name", "markable"), [("dot", True), ("rounded", True), ("complex", False), ("boolean", False)]
)
def test_what_the_mark_can_say(name: str, markable: bool) -> None:
    assert is_markable(OPS[name]) == markable


@pytest.mark.parametrize(("name", "expected"), [("dot", False), ("rounded", True), ("exact", False)])
def test_algorithms_that_round(name: str, expected: bool) -> None:
    assert rounds(OPS[name], "lhs") == rounds(OPS[name], "rhs") == expected


@pytest.mark.parametrize(
    ("kind", "wide"), [(BF16, F32), (F16, F32), (F32, F32), (F64, F64), (I8, I8), (C64, C64)], ids=str
)
def test_narrow_floats_are_summed_in_wider_ones(kind: Type, wide: Type) -> None:
    assert accumulation_type(kind) is wide


@pytest.mark.parametrize("components", [1, 2, 3])
def test_leading_parts_of_operands(components: int) -> None:
    """Each additional part makes the product more accurate; infinities are unchanged."""
    count = {1: 1, 2: 3, 3: 6}[components]
    algorithm = f"""algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = bf16,
      accumulation_type = f32, lhs_component_count = {components}, rhs_component_count = {components},
      num_primitive_operations = {count}, allow_imprecise_accumulation = false>"""
    text = function(
        "%x: tensor<3x1xf32>, %y: tensor<1x1xf32>",
        "tensor<3x1xf32>",
        '%0 = "stablehlo.dot_general"(%x, %y) {dot_dimension_numbers = #stablehlo.dot<'
        f"lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, {algorithm}}}"
        " : (tensor<3x1xf32>, tensor<1x1xf32>) -> tensor<3x1xf32>",
        "return %0 : tensor<3x1xf32>",
    )
    x = np.array([[1.2345678], [np.inf], [-3.3333333]], np.float32)
    program = expect_same(text, x, np.ones((1, 1), np.float32))
    (found,) = interpret(program, x, np.ones((1, 1), np.float32))
    assert found[1] == np.inf
    error = np.abs(found[::2] / x[::2].astype(np.float64) - 1).max()
    assert error <= float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps) ** components
