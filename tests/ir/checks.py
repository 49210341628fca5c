"""The test dialects of StableHLO's own programs. A `check`, which is an op or a custom call (`@check.expect_close`),
requires that two values agree; if they do not, it raises an `ExecutionError` with its text and location. Of the ops
`interpreter.*`, one runs functions as separate processes, and two inspect intermediate values."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trivium.ir.attributes import DenseElements, SymbolRef
from trivium.ir.custom_calls import register_custom_call
from trivium.ir.declare import Op, Operand, Operands, Result, Results
from trivium.ir.errors import ExecutionError
from trivium.ir.ops.numerics import widen
from trivium.ir.parallel import run_parallel
from trivium.ir.text import print_op, register_form
from trivium.ir.text.assembly import TYPE_RULES, TypeRule

ALMOST, ALMOST_CUSTOM_CALL = 1e-4, 1e-3
"""The absolute differences that the op `almost_eq` and its custom call allow (as `stablehlo-translate` defines
them)."""
MAX_ULPS = 3
"""The units of the last place that `close` allows."""


def expect_eq(value: np.ndarray, expected: np.ndarray) -> None:
    """Checks that elements are equal; NaN equals NaN."""
    one, other = parts(value), parts(expected)
    _expect(_equal(one, other), one, other, "equal elements")


def expect_almost_eq(value: np.ndarray, expected: np.ndarray, tolerance: float = ALMOST) -> None:
    """Checks that elements are equal, or finite and nearly equal."""
    holds = almost_equal(value, expected, tolerance)
    _expect(holds, parts(value), parts(expected), f"{tolerance} apart at most")


def expect_close(value: np.ndarray, expected: np.ndarray, most: int = MAX_ULPS, least: int = 0) -> None:
    """Checks that elements are at most a few units in the last place apart."""
    holds = close(value, expected, most, least)
    _expect(holds, parts(value), parts(expected), f"{least} to {most} ulps apart")


def almost_equal(value: np.ndarray, expected: np.ndarray, tolerance: float) -> np.ndarray:
    one, other = parts(value), parts(expected)
    with np.errstate(all="ignore"):
        near = np.abs(widen(one) - widen(other)) <= tolerance
    return _equal(one, other) | near


def close(value: np.ndarray, expected: np.ndarray, most: int = MAX_ULPS, least: int = 0) -> np.ndarray:
    one, other = parts(value), parts(expected)
    finite = np.isfinite(widen(one)) & np.isfinite(widen(other))
    apart = np.abs(_place(one) - _place(other))
    return np.where(finite, (least <= apart) & (apart <= most), _equal(one, other))


def _equal(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    one, other = widen(one), widen(other)
    return (one == other) | ((one != one) & (other != other))


def parts(array: np.ndarray) -> np.ndarray:
    """Returns real numbers: a complex number becomes two of them, in an additional last dimension."""
    array = np.asarray(array)
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


def _place(array: np.ndarray) -> np.ndarray:
    """Returns the position of each float in the order of all floats of its type; both zeros have position 0.
    Differences between finite floats may wrap around, but never to only a few units."""
    bits = np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}")
    least = np.int64(np.iinfo(bits.dtype).min)
    return np.where(bits < 0, least - bits.astype(np.int64), bits.astype(np.int64))


def _expect(holds: np.ndarray, value: np.ndarray, expected: np.ndarray, wanted: str) -> None:
    if np.all(holds):
        return
    index = tuple(map(int, np.argwhere(~holds)[0]))
    wrong = f"{np.size(holds) - np.count_nonzero(holds)} of {np.size(holds)} numbers differ"
    raise ExecutionError(f"{wrong}, the first at {index}: has {value[index]}, expected {expected[index]}, {wanted}")


def register() -> None:
    """Registers the checks as custom calls."""
    almost = partial(expect_almost_eq, tolerance=ALMOST_CUSTOM_CALL)
    for name, check in {"eq": expect_eq, "almost_eq": almost, "close": expect_close}.items():

        def evaluate(op: Any, value: np.ndarray, expected: np.ndarray, check: Any = check) -> tuple[()]:
            check(value, expected)
            return ()

        register_custom_call(f"check.expect_{name}", evaluate=evaluate, effects=True, replace=True)

    def equal(op: Any, value: np.ndarray, expected: np.ndarray) -> np.ndarray:
        expect_eq(value, expected)
        return np.array(True)

    register_custom_call("check.eq", evaluate=equal, effects=True, replace=True)


class ExpectEq(Op, name="check.expect_eq"):
    lhs: Operand
    rhs: Operand

    def evaluate(lhs, rhs):
        expect_eq(lhs, rhs)
        return ()


class ExpectAlmostEq(Op, name="check.expect_almost_eq"):
    lhs: Operand
    rhs: Operand
    tolerance: float = ALMOST

    def evaluate(lhs, rhs, tolerance):
        expect_almost_eq(lhs, rhs, tolerance)
        return ()


class ExpectClose(Op, name="check.expect_close"):
    actual: Operand
    expected: Operand
    max_ulp_difference: int = 1
    min_ulp_difference: int = 0

    def evaluate(actual, expected, max_ulp_difference, min_ulp_difference):
        expect_close(actual, expected, max_ulp_difference, min_ulp_difference)
        return ()


class ExpectEqConst(Op, name="check.expect_eq_const"):
    lhs: Operand
    value: DenseElements

    def evaluate(lhs, value):
        expect_eq(lhs, value.array)
        return ()


class ExpectAlmostEqConst(Op, name="check.expect_almost_eq_const"):
    lhs: Operand
    value: DenseElements
    tolerance: float = ALMOST

    def evaluate(lhs, value, tolerance):
        expect_almost_eq(lhs, value.array, tolerance)
        return ()


class ConstForm:
    """`%value, dense<...> : type {tolerance = ...}`"""

    def fits(self, op: Any) -> bool:
        return len(op.operands) == 1 and isinstance(op.attributes.get("value"), DenseElements)

    def print(self, op: Any, printer: Any) -> str:
        rest = printer.optional_dictionary(op, frozenset({"value"}))
        return f"{printer.value(op.lhs)}, {printer.attribute(op.value)}{rest}"

    def parse(self, parser: Any, draft: Any) -> None:
        parser.operand(draft)
        parser.expect(",")
        draft.attributes["value"] = parser.attribute()
        parser.optional_dictionary(draft)
        draft.operand_types = [draft.attributes["value"].type]


def _parse_once(parser: Any, draft: Any) -> None:
    draft.operand_types, draft.result_types = [parser.type()] * len(draft.operands), ()


TYPE_RULES["once"] = TypeRule(lambda op, printer: printer.type(op.operand_types[0]), _parse_once)

register_form(ExpectEq, "$lhs, $rhs : once")
register_form(ExpectAlmostEq, "$lhs, $rhs(, tolerance = $tolerance)? : once")
limits = "max_ulp_difference = $max_ulp_difference(, min_ulp_difference = $min_ulp_difference)?"
register_form(ExpectClose, f"$actual, $expected, {limits} : operands")
register_form(ExpectEqConst, ConstForm())
register_form(ExpectAlmostEqConst, ConstForm())


PROBED: dict[str, list[np.ndarray]] = {}
"""The values that each probe has seen, in order."""


class Probe(Op, name="interpreter.probe"):
    """Returns its operand, and records it."""

    operand: Operand
    probe_id: str
    result: Result

    def infer(operand):
        return operand

    def evaluate(operand, probe_id):
        PROBED.setdefault(probe_id, []).append(operand)
        return operand


class ExpectSerializedEq(Op, name="check.expect_serialized_eq"):
    """Compares a value with what a probe saw when it was run for the `iter`-th time."""

    operand: Operand
    probe_id: str
    iter: int = 0

    def evaluate(operand, probe_id, iter):
        expect_eq(operand, PROBED[probe_id][iter])
        return ()


class Print(Op, name="interpreter.print"):
    """Prints its operand, and its name in the text."""

    operand: Operand

    def evaluate(op, operand):
        name = print_op(op).split()[1]
        print(f"{name} = {tensor_text(operand, op.operand.type)}\n", end="")
        return ()


register_form(Probe, "$operand, probe_id = $probe_id : same")
register_form(ExpectSerializedEq, "$operand, probe_id = $probe_id(, iter = $iter)? : operands")
register_form(Print, "$operand : operands")


def tensor_text(array: np.ndarray, kind: Any) -> str:
    """Returns a tensor as StableHLO's interpreter prints it: one row of elements per line."""
    array = np.asarray(array)
    if not array.ndim:
        return f"{kind} {{{_element_text(array[()])}}}"
    return f"{kind} {{\n{_rows_text(array, '  ')}\n}}"


def _rows_text(array: np.ndarray, indent: str) -> str:
    if array.ndim == 1:
        return f"{indent}[{', '.join(map(_element_text, array))}]"
    if not len(array):
        return f"{indent}[]"
    rows = ",\n".join(_rows_text(row, indent + "  ") for row in array)
    return f"{indent}[\n{rows}\n{indent}]"


def _element_text(element: Any) -> str:
    if isinstance(element, np.bool_):
        return str(bool(element)).lower()
    if isinstance(element, np.complexfloating):
        return f"[{element.real:e}, {element.imag:e}]"
    integral = isinstance(element, np.integer) or "int" in type(element).__name__
    return str(int(element)) if integral else f"{float(element):e}"


class RunParallel(Op, name="interpreter.run_parallel"):
    """The attribute has rows of functions, one row per replica; each function takes as many operands as it has
    arguments."""

    inputs: Operands
    programs: tuple[tuple[SymbolRef, ...], ...]
    infeed: tuple[SymbolRef, ...] = ()
    results: Results

    def evaluate(inputs, programs, infeed, context):
        rows = [[program.name for program in row] for row in programs]
        rest, arguments = list(inputs), []
        for name in (name for row in rows for name in row):
            count = len(context.module.function(name).arguments)
            arguments.append(rest[:count])
            rest = rest[count:]
        queue = [context.call(function.name, ()) for function in infeed]
        return [value for results in run_parallel(context.module, rows, arguments, queue) for value in results]
