"""The scalar operations of kernels, named as in StableHLO and CHLO: each with its operand types, its result type and
its cost. An operation computes what the op of its name computes on one element; that meaning is not repeated here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trivium.compiler.kernel.dtypes import BOOL, DTYPES, FLOATS, INTEGERS, SIGNED, DType, bit_width
from trivium.ir.errors import CompileError

NUMBERS = FLOATS | INTEGERS
BITS = INTEGERS | {"i1"}

DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")


@dataclass(frozen=True)
class Operation:
    """A scalar operation. The types of its operands must be equal and in `types`; the result has the same type, unless
    `result` is set. `cost` is in units of an addition (see `compiler.target`), `integer_cost` is the cost on integers
    if it differs; `flops` is the number of operations that it counts as in reports."""

    name: str
    arity: int
    types: frozenset[str]
    result: DType | None = None
    commutative: bool = False
    associative: bool = False
    cost: float = 1.0
    integer_cost: float | None = None
    flops: int = 1
    transcendental: bool = False


def _table() -> dict[str, Operation]:
    table: dict[str, Operation] = {}

    def declare(names: str, arity: int, types: frozenset[str], **facts: Any) -> None:
        for name in names.split():
            table[name] = Operation(name, arity, types, **facts)

    def function(names: str, cost: float) -> None:
        declare(names, 1, FLOATS, cost=cost, transcendental=True)

    function("sqrt", 4.0)
    function("rsqrt", 5.0)
    function("exponential", 10.0)
    function("exponential_minus_one log", 12.0)
    function("logistic", 15.0)
    function("log_plus_one tanh erf", 16.0)
    function("sine cosine cbrt asin acos atan sinh cosh asinh acosh atanh erfc erf_inv lgamma digamma", 20.0)
    function("tan", 30.0)
    declare("ceil floor round_nearest_afz round_nearest_even", 1, FLOATS)
    declare("is_finite", 1, FLOATS, result=BOOL)
    declare("negate", 1, NUMBERS)
    declare("abs sign", 1, FLOATS | SIGNED)
    declare("not", 1, BITS)
    declare("popcnt count_leading_zeros", 1, INTEGERS)
    declare("add multiply", 2, NUMBERS | {"i1"}, commutative=True, associative=True)
    declare("maximum minimum", 2, NUMBERS | {"i1"}, commutative=True, associative=True)
    declare("and or xor", 2, BITS, commutative=True, associative=True)
    declare("subtract", 2, NUMBERS)
    declare("divide", 2, NUMBERS, cost=4.0, integer_cost=20.0)
    declare("remainder", 2, NUMBERS, cost=8.0, integer_cost=20.0)
    declare("power", 2, NUMBERS, cost=60.0, transcendental=True)
    declare("atan2", 2, FLOATS, cost=20.0, transcendental=True)
    declare("next_after", 2, FLOATS, cost=8.0)
    declare("shift_left shift_right_arithmetic shift_right_logical", 2, INTEGERS)
    declare("fma", 3, FLOATS, flops=2)
    declare("clamp", 3, NUMBERS | {"i1"})
    return table


OPERATIONS: dict[str, Operation] = _table()
"""Operations whose operands all have the same type. `compare`, `select`, `convert`, `bitcast_convert` and
`reduce_precision` have their own rules below."""


def _compare(attributes: dict[str, object], lhs: DType, rhs: DType) -> DType:
    """compare(lhs, rhs) {direction, total_order}: floats are compared as in IEEE 754 (NaN is unequal to everything), or
    by total order."""
    _require(lhs == rhs, f"compare: operands have types {lhs} and {rhs}, expected equal types")
    _require(
        attributes.get("direction") in DIRECTIONS,
        f"compare: has direction {attributes.get('direction')}, expected one of {DIRECTIONS}",
    )
    return BOOL


def _select(attributes: dict[str, object], pred: DType, on_true: DType, on_false: DType) -> DType:
    """select(pred, on_true, on_false)"""
    _require(pred == BOOL, f"select: the predicate has type {pred}, expected i1")
    _require(on_true == on_false, f"select: branches have types {on_true} and {on_false}, expected equal types")
    return on_true


def _convert(attributes: dict[str, object], operand: DType) -> DType:
    """convert(x) {dtype}: float to integer rounds toward zero and saturates, NaN becomes 0; to i1 is `x != 0`."""
    _require(attributes.get("dtype") in DTYPES, f"convert: has dtype {attributes.get('dtype')}, expected a scalar type")
    return DType(attributes["dtype"])  # type: ignore[arg-type]


def _bitcast_convert(attributes: dict[str, object], operand: DType) -> DType:
    """bitcast_convert(x) {dtype}: the same bits; widths must be equal (for others, the lowering splits and joins
    elements)."""
    result = _convert(attributes, operand)
    _require(
        bit_width(result) == bit_width(operand), f"bitcast_convert: from {operand} to {result}, expected equal widths"
    )
    return result


def _reduce_precision(attributes: dict[str, object], operand: DType) -> DType:
    """reduce_precision(x) {exponent_bits, mantissa_bits}"""
    _require(operand in FLOATS, f"reduce_precision: the operand has type {operand}, expected a float")
    _require(
        {"exponent_bits", "mantissa_bits"} <= attributes.keys(),
        "reduce_precision: expected exponent_bits and mantissa_bits",
    )
    return operand


SPECIAL: dict[str, Callable[..., DType]] = {
    "compare": _compare, "select": _select, "convert": _convert,
    "bitcast_convert": _bitcast_convert, "reduce_precision": _reduce_precision,
}  # fmt: skip
"""The result types of operations with attributes or mixed operands. Each costs as much as an addition."""
SPECIAL_ARITY = {"compare": 2, "select": 3, "convert": 1, "bitcast_convert": 1, "reduce_precision": 1}


def result_type(name: str, attributes: dict[str, object], operands: tuple[DType, ...]) -> DType:
    """Returns the result type of operation `name` on operands of these types. Raises CompileError if it does not accept
    them."""
    if name in SPECIAL:
        _require(
            len(operands) == SPECIAL_ARITY[name],
            f"{name}: has {len(operands)} operands, expected {SPECIAL_ARITY[name]}",
        )
        return SPECIAL[name](attributes, *operands)
    operation = OPERATIONS.get(name)
    if operation is None:
        raise CompileError(f"{name!r} is not a scalar operation of kernels")
    _require(len(operands) == operation.arity, f"{name}: has {len(operands)} operands, expected {operation.arity}")
    _require(len(set(operands)) == 1, f"{name}: operands have types {', '.join(operands)}, expected equal types")
    _require(
        operands[0] in operation.types,
        f"{name}: operands have type {operands[0]}, expected one of {', '.join(sorted(operation.types))}",
    )
    return operation.result or operands[0]


def cost(name: str, dtype: DType) -> float:
    """Returns the cost of operation `name` on operands of a type, in units of an addition."""
    operation = OPERATIONS.get(name)
    if operation is None:
        return 1.0
    integers = operation.integer_cost is not None and dtype not in FLOATS
    return operation.integer_cost if integers else operation.cost  # type: ignore[return-value]


def flops(name: str) -> int:
    """Returns the number of operations that it counts as in reports."""
    operation = OPERATIONS.get(name)
    return operation.flops if operation is not None else 1


def is_transcendental(name: str) -> bool:
    """Whether it is reported as a transcendental function and not as flops."""
    return name in OPERATIONS and OPERATIONS[name].transcendental


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise CompileError(message)
