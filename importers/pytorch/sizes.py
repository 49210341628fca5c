"""The symbolic sizes of a saved program, as the numbers that they had when it was exported. The results that the
program computes from them are computed here, within 64 bits, and compared with those in the file."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from trivium.importers.pytorch.archive import Json
from trivium.ir.errors import Error, UnsupportedOpError

Number = int | float | bool


def _power(base: Number, exponent: Number) -> Number:
    if abs(exponent) > 64:
        raise ValueError(f"has the exponent {exponent}, expected at most 64")
    return base**exponent


def _shifted(shift: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def limited(x: int, by: int) -> int:
        if not 0 <= by <= 64:
            raise ValueError(f"shifts by {by}, expected at most 64")
        return shift(x, by)

    return limited


def _check(holds: Number, *_: object) -> None:
    if not holds:
        raise ValueError("a condition on the sizes does not hold for those that the program was exported with")


_ARITHMETIC: dict[str, Callable[..., object]] = {
    **{
        f"_operator.{name}": getattr(operator, name)
        for name in (
            *("add", "sub", "mul", "floordiv", "truediv", "mod", "neg", "pos"),
            *("eq", "ne", "le", "ge", "lt", "gt", "and_", "or_", "not_"),
        )
    },
    "_operator.pow": _power,
    "_operator.lshift": _shifted(operator.lshift),
    "_operator.rshift": _shifted(operator.rshift),
    **{f"math.{name}": getattr(math, name) for name in ("trunc", "ceil", "floor")},
    "torch.sym_int": int,
    "torch.sym_float": float,
    "torch.sym_not": operator.not_,
    "torch.sym_max": max,
    "torch.sym_min": min,
    "torch.sym_ite": lambda condition, x, y: x if condition else y,
    "torch.sym_sqrt": math.sqrt,
    "torch._sym_sqrt": math.sqrt,
}
_CHECKS: dict[str, Callable[..., None]] = {
    "aten._assert_scalar.default": _check,
    "aten.sym_constrain_range.default": lambda *_, **__: None,
    "aten.sym_constrain_range_for_size.default": lambda *_, **__: None,
}
_OF_TENSORS = ("aten.sym_size.int", "aten.sym_stride.int", "aten.sym_numel.default", "aten.sym_storage_offset.default")
SIZE_OPS = frozenset({*_ARITHMETIC, *_CHECKS, *_OF_TENSORS})
"""The operators that compute with sizes alone, by the names of rules."""


class Sizes:
    """The numbers of one graph by name. `tensors` describes each tensor."""

    def __init__(self, tensors: Json, graph: Json):
        self.tensors = tensors
        self.known: dict[str, Number] = {}
        kinds = ("sym_int_values", "sym_float_values", "sym_bool_values")
        self.claimed = {name: value for kind in kinds for name, value in (graph.get(kind) or {}).items()}

    @staticmethod
    def number(entry: Json) -> Number:
        """Returns a size in the file: a number, or a symbol with the number that it represented."""
        ((kind, value),) = entry.items()
        if kind == "as_expr":
            hint = value.get("hint")
            if hint is None:
                message = f"the size {value['expr_str'][:80]} depends on the elements of a tensor"
                raise UnsupportedOpError(f"{message}, expected one that depends on shapes only")
            ((_, value),) = hint.items()
        return _bounded(value)

    def evaluate(self, op: str, node: Json) -> None:
        """Performs the arithmetic of a node."""
        arguments = [self._operand(entry["arg"]) for entry in node["inputs"]]
        try:
            if op in _CHECKS:
                _CHECKS[op](*arguments)
                return
            result = _bounded(_of_tensor(op, *arguments) if op in _OF_TENSORS else _ARITHMETIC[op](*arguments))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise Error(f"{op} on sizes: {error}") from None
        ((_, named),) = node["outputs"][0].items()
        name = named["as_name"]
        claimed = self.claimed.get(name)
        if claimed is not None and _has_number(claimed) and self.number(claimed) != result:
            raise Error(f"the program is damaged: {name} has {self.number(claimed)}, expected {result}")
        self.known[name] = result

    def _operand(self, entry: Json) -> Any:
        ((kind, value),) = entry.items()
        if kind == "as_tensor":
            return self.tensors[value["name"]]
        if kind.startswith("as_sym_"):
            return self._read(value)
        return value

    def argument(self, kind: str, value: Json | list[Json]) -> dict[str, Number | list[Number]]:
        """Returns an argument that is a symbolic number, or a list of them, as plain numbers."""
        plain = kind.replace("sym_", "")
        return {plain: [self._read(x) for x in value] if isinstance(value, list) else self._read(value)}

    def _read(self, entry: Json) -> Number:
        ((kind, value),) = entry.items()
        if kind != "as_name":
            return _bounded(value)
        if value not in self.known:
            raise UnsupportedOpError(f"the number {value} is an input of the program, expected tensors")
        return self.known[value]


def _has_number(entry: Json) -> bool:
    return "as_expr" not in entry or entry["as_expr"].get("hint") is not None


def _bounded(value: object) -> Number:
    if not isinstance(value, int | float) or not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"has {str(value)[:40]}, expected a number of 64 bits")
    return value


def _of_tensor(op: str, meta: Json, dimension: int = 0) -> int:
    sizes, strides = ([entry["as_int"] for entry in meta[name]] for name in ("sizes", "strides"))
    if op == "aten.sym_numel.default":
        return math.prod(sizes)
    if op == "aten.sym_storage_offset.default":
        return 0
    return (sizes if op == "aten.sym_size.int" else strides)[dimension]
