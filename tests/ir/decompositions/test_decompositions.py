"""Decompositions of CHLO's ops into StableHLO's: they compute what the ops evaluate to, and MLIR accepts the
programs."""

import ml_dtypes
import numpy as np
import pytest

import trivium
from tests.ir.bytecode.mlir import parsed
from tests.ir.ops.records import Record, collect
from tests.ir.ops.test_quantized_mlir import ELEMENTS, quantized, taken
from tests.ir.ops.test_records import assert_agree, error_allowed
from trivium.ir import ops
from trivium.ir.builder import Builder
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.declare import ELEMENTWISE, OPS
from trivium.ir.decompositions import DECOMPOSITIONS, decompose
from trivium.ir.decompositions.programs import MOST_GROUPS
from trivium.ir.equality import difference
from trivium.ir.errors import UnsupportedOpError
from trivium.ir.func import Function, Module
from trivium.ir.interpreter import evaluate
from trivium.ir.text import parse, print_module
from trivium.ir.types import TensorType, type_of

RECORDS = [record for record in collect() if record.op.NAME.startswith("chlo.")]
IDS = [f"{record.op.short_name()}-{index}" for index, record in enumerate(RECORDS)]
ULPS = {
    **dict.fromkeys((ops.Acos, ops.Acosh, ops.Asin, ops.Asinh, ops.Atan, ops.Atanh, ops.Cosh, ops.Sinh), 4),
    ops.Square: 4,  # of complex numbers, whose parts are rounded in intermediate steps
    **dict.fromkeys((ops.ChloTan, ops.Erf, ops.Erfc, ops.ErfInv, ops.BesselI1e, ops.Zeta), 8),
    ops.Digamma: 32,
    # A difference of large numbers near the zeros on the negative side, and the exponential of a large number.
    **{ops.Lgamma: 256, ops.Polygamma: 128},
}
"""How many units in the last place the results may differ; those of other ops are equal bit for bit."""


def expand(module: Module) -> Module:
    """Decomposes until no op of CHLO is left."""
    while found := [op for op in module.walk() if type(op) in DECOMPOSITIONS]:
        for op in found:
            values = decompose(op, Builder.in_front_of(op))
            for result, value in zip(op.results, values, strict=True):
                result.replace_all_uses_with(value)
            op.erase()
    return module


def agree(record: Record, module: Module) -> None:
    for found, wanted in zip(evaluate(module, *record.arrays), evaluate(record.module(), *record.arrays), strict=True):
        assert_agree(found, wanted, error_allowed(type_of(wanted), ULPS.get(record.op, 0)))


def test_every_op_has_one():
    assert set(DECOMPOSITIONS) == {op for name, op in OPS.items() if name.startswith("chlo.")}


@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_meaning(record):
    module = expand(record.module())
    module.verify()
    assert not [op.NAME for op in module.walk() if op.NAME.startswith("chlo.")]
    agree(record, module)


@pytest.mark.jax
@pytest.mark.parametrize("record", RECORDS, ids=IDS)
def test_mlir_agrees(record):
    parsed(expand(record.module()).text(elide=False))


DYNAMIC = [
    record
    for record in RECORDS
    if record.op.TRAITS & {ELEMENTWISE} or record.op.short_name().startswith(("broadcast", "constant_like", "top_k"))
]


LIMITS = np.finfo(np.float64)
SPECIAL = [0.0, 1.0, 2.0, 0.5, np.inf, LIMITS.max, LIMITS.tiny, LIMITS.smallest_subnormal, 1e-300, 1e300, 27.1]
EVERYWHERE = np.concatenate([SPECIAL, np.logspace(-20, 5, 60), np.linspace(0, 8, 65), 1 - np.logspace(-16, -1, 40)])
EVERYWHERE = np.concatenate([EVERYWHERE, -EVERYWHERE, [np.nan]])
WITH_ZEROS = {ops.Lgamma, ops.Digamma}
"""Functions with zeros at negative arguments; near these, only the absolute error is small."""


@pytest.mark.parametrize("op", [op for op in ULPS if len(op.OPERANDS) == 1], ids=lambda op: op.short_name())
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_everywhere(op, dtype):
    """Very large and very small arguments, and those next to limits."""
    with np.errstate(all="ignore"):
        record = Record(op, (EVERYWHERE.astype(dtype),))
    (found,), (wanted,) = (evaluate(module, *record.arrays) for module in (expand(record.module()), record.module()))
    few = 12 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, wanted, rtol=few, atol=4 * few if op in WITH_ZEROS else LIMITS.smallest_subnormal)
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_zeta_everywhere(dtype):
    """Of f32, by shorter series: small and large powers, also of negative numbers."""
    rng = np.random.default_rng(0)
    powers = np.concatenate([1 + 10 ** rng.uniform(-3, 1.5, 300), rng.integers(2, 9, 100)]).astype(dtype)
    bases = np.concatenate([10 ** rng.uniform(-1, 3, 300), -rng.uniform(0.1, 20, 100)]).astype(dtype)
    record = Record(ops.Zeta, (powers, bases))
    (found,), (wanted,) = (evaluate(module, *record.arrays) for module in (expand(record.module()), record.module()))
    finite = np.abs(wanted) > np.finfo(dtype).tiny
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=64 * np.finfo(dtype).eps)
    orders = rng.integers(1, 5, 400).astype(dtype)
    record = Record(ops.Polygamma, (orders, np.abs(bases)))
    (found,), (wanted,) = (evaluate(module, *record.arrays) for module in (expand(record.module()), record.module()))
    np.testing.assert_allclose(found, wanted, rtol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize("op", [ops.Cosh, ops.Sinh], ids=lambda op: op.short_name())
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_real_numbers_stay_real(op, dtype):
    """The imaginary part is zero even where the function is infinite."""
    numbers = [complex(re, im) for re in (1e30, -1e30, np.inf, -np.inf, 2.0, -2.0) for im in (0.0, -0.0)]
    record = Record(op, (np.array(numbers, dtype),))
    with np.errstate(all="ignore"):
        (found,) = evaluate(expand(record.module()), *record.arrays)
        wanted = getattr(np, op.short_name())(record.arrays[0])
    np.testing.assert_allclose(found.real, wanted.real, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(found.imag, 0)
    np.testing.assert_array_equal(np.signbit(found.imag), np.signbit(wanted.imag))


INVERSE = (ops.Acos, ops.Acosh, ops.Asin, ops.Asinh, ops.Atan, ops.Atanh)


@pytest.mark.parametrize("op", INVERSE, ids=lambda op: op.short_name())
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_infinite_complex_numbers(op, dtype):
    """The limits that C defines for them, with their signs."""
    parts = [np.inf, -np.inf, 2.0, -0.5]
    numbers = [complex(re, im) for re in parts for im in parts if np.isinf([re, im]).any()]
    record = Record(op, (np.array(numbers, dtype),))
    with np.errstate(all="ignore"):
        (found,) = evaluate(expand(record.module()), *record.arrays)
    wanted = getattr(np, f"arc{op.short_name()[1:]}")(record.arrays[0])
    np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(found.real), np.signbit(wanted.real))
    np.testing.assert_array_equal(np.signbit(found.imag), np.signbit(wanted.imag))


def dynamic(record: Record) -> Module:
    """Returns the decomposed op on tensors whose extents are known only at run time."""
    kinds = [TensorType((None,) * array.ndim, type_of(array).element_type) for array in record.arrays]
    function = Function.build("main", kinds, lambda builder, *given: record.add(builder, given))
    return expand(Module.build(functions=[function]))


@pytest.mark.parametrize("record", DYNAMIC, ids=str)
def test_dynamic_extents(record):
    module = dynamic(record)
    module.verify()
    agree(record, module)


@pytest.mark.jax
@pytest.mark.parametrize("record", DYNAMIC, ids=str)
def test_mlir_agrees_on_dynamic_extents(record):
    parsed(str(dynamic(record)))


def test_quantized_elements():
    """Ops that take quantized elements compute with the numbers that these express; artifacts keep the ops as they
    are."""
    count = 0
    for record in RECORDS:
        text = print_module(record.module(), generic=True)
        for kind in ELEMENTS:
            changed = quantized(text, kind)
            if changed != text and taken(changed):
                arrays = [_stored(array) if array.dtype == np.float32 else array for array in record.arrays]
                wanted = evaluate(parse(changed), *arrays)
                for found, each in zip(evaluate(expand(parse(changed)), *arrays), wanted, strict=True):
                    np.testing.assert_array_equal(found, each)
                assert difference(deserialize(serialize(parse(changed))), parse(changed)) == ""
                count += 1
    assert count > 30


def _stored(array: np.ndarray) -> np.ndarray:
    return np.clip(np.nan_to_num(np.round(array * 2)), -128, 127).astype(np.int8)


@pytest.mark.parametrize(
    "text",
    [
        """%0, %1 = chlo.scan(%x) inits(%z) dimension=0 {
          ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>): stablehlo.return %a, %b : tensor<4xf32>, tensor<4xf32>
        } : (tensor<?x4xf32>, tensor<4xf32>) -> (tensor<?x4xf32>, tensor<4xf32>)""",
    ],
)
def test_ops_that_stablehlo_cannot_express(text):
    program = parse(f"func.func @main(%x: tensor<?x4xf32>, %z: tensor<4xf32>) {{ {text}\n return }}")
    with pytest.raises(UnsupportedOpError, match=r"cannot be written with StableHLO's own(?s:.*)chlo\.scan"):
        expand(program)


def test_next_after_in_narrow_types():
    """All pairs of neighbors and signs, in types with and without infinities, negative zeros and zeros."""
    eight = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e3m4", "float8_e8m0fnu")
    for name in (*eight, "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        every = np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype=np.uint8).view(dtype)
        x, y = np.repeat(every, every.size), np.tile(every, every.size)
        agree_exactly(Record(ops.NextAfter, (x, y)))


def agree_exactly(record: Record) -> None:
    found, wanted = (evaluate(module, *record.arrays)[0] for module in (expand(record.module()), record.module()))
    different = (found.view(np.uint8) != wanted.view(np.uint8)) & ~np.isnan(wanted.astype(np.float32))
    assert not different.any(), [(a[different][0] for a in record.arrays)]


@pytest.mark.parametrize("groups", [MOST_GROUPS + 1, (1 << 63) - 1])
def test_too_many_groups(groups):
    """A short text may describe a product for each of very many groups."""
    module = parse(
        f"""func.func @main(%x: tensor<2x5x3xf32>, %y: tensor<2x3x4xf32>, %g: tensor<{groups}xi64>)
            -> tensor<2x5x4xf32> {{
          %0 = "chlo.ragged_dot"(%x, %y, %g) <{{ragged_dot_dimension_numbers = #chlo.ragged_dot<
            lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2],
            rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0]>}}>
            : (tensor<2x5x3xf32>, tensor<2x3x4xf32>, tensor<{groups}xi64>) -> tensor<2x5x4xf32>
          return %0 : tensor<2x5x4xf32>
        }}"""
    )
    with pytest.raises(trivium.Error, match=f"it has {groups} groups, expected at most {MOST_GROUPS}"):
        serialize(module)
