"""Control flow: loops and branches, the return of their regions, tuples, barriers, and calls out of the language
(`custom_call`) or to a named decomposition (`composite`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from trivium.ir.attributes import Attribute, DenseElements, Dictionary, Struct, SymbolRef
from trivium.ir.codecs import I32Int
from trivium.ir.core import Region
from trivium.ir.custom_calls import CUSTOM_CALLS, evaluate_custom_call
from trivium.ir.declare import (
    PURE,
    RECURSIVE_EFFECTS,
    Op,
    Operand,
    Operands,
    Regions,
    Result,
    Results,
)
from trivium.ir.errors import fail
from trivium.ir.func import check_callee
from trivium.ir.ops.buffers import check_buffers
from trivium.ir.ops.common import expect_values
from trivium.ir.ops.regions import check_region, outputs_of
from trivium.ir.terminators import Return
from trivium.ir.types import (
    I1,
    I32,
    BufferType,
    FutureType,
    OpaqueType,
    TensorType,
    TupleType,
    UnrankedTensorType,
    alike,
    compatible,
)

__all__ = [
    "Case",
    "Composite",
    "CustomCall",
    "CustomCallApiVersion",
    "GetTupleElement",
    "If",
    "OptimizationBarrier",
    "OutputOperandAlias",
    "Return",
    "Tuple",
    "While",
]


class While(Op, name="stablehlo.while", traits={RECURSIVE_EFFECTS}):
    """Applies `body` to `operand` repeatedly, as long as `cond` is true."""

    operand: Operands
    cond: Region
    body: Region
    results: Results

    def infer(operand):
        return list(operand)

    def check(operand, cond, body, results):
        expect_values("I1", "operand", operand, BufferType)
        check_region("C1", "cond", cond, operand, [TensorType((), I1)])
        check_region("C2", "body", body, operand, operand)
        _check_types("C3", "operand", operand, results)

    def evaluate(operand, cond, body):
        state = tuple(operand)
        while cond(*state)[0]:
            state = body(*state)
        return state


class If(Op, name="stablehlo.if", traits={RECURSIVE_EFFECTS}):
    """Runs `true_branch` if `pred` is true, else `false_branch`."""

    pred: Operand
    true_branch: Region
    false_branch: Region
    results: Results

    def infer(true_branch):
        return list(outputs_of(true_branch))

    def check(pred, true_branch, false_branch, results):
        if not compatible(pred, TensorType((), I1)):
            fail("I1", f"pred has type {pred}, expected tensor<i1>")
        for name, region in (("true_branch", true_branch), ("false_branch", false_branch)):
            _check_no_arguments("C1", name, region)
        _check_types("C2", "true_branch", outputs_of(true_branch), outputs_of(false_branch), "false_branch")
        _check_types("C3", "true_branch", outputs_of(true_branch), results)
        expect_values("O1", "results", results)

    def evaluate(pred, true_branch, false_branch):
        return true_branch() if pred else false_branch()


class Case(Op, name="stablehlo.case", traits={RECURSIVE_EFFECTS}):
    """Runs the branch with number `index`, or the last one if there is none with that number."""

    index: Operand
    branches: Regions
    results: Results

    def infer(branches):
        _check_branches(branches)
        return list(outputs_of(branches[0]))

    def check(index, branches, results):
        if not compatible(index, TensorType((), I32)):
            fail("I1", f"index has type {index}, expected tensor<i32>")
        _check_branches(branches)
        for position, branch in enumerate(branches):
            _check_no_arguments("C2", f"branches[{position}]", branch)
        for position, branch in enumerate(branches[1:], 1):
            _check_types("C3", "branches[0]", outputs_of(branches[0]), outputs_of(branch), f"branches[{position}]")
        _check_types("C4", "branches[0]", outputs_of(branches[0]), results)
        expect_values("O1", "results", results)

    def evaluate(index, branches):
        return branches[index if 0 <= index < len(branches) else -1]()


class OptimizationBarrier(Op, name="stablehlo.optimization_barrier", traits={PURE}):
    """Returns the operands unchanged; no op may be moved across it."""

    operand: Operands
    results: Results

    def infer(operand):
        return list(operand)

    def check(operand, results):
        expect_values("I1", "operand", operand, per_axis=False)
        _check_types("C1", "operand", operand, results, agree=alike)

    def evaluate(operand):
        return operand


class Tuple(Op, name="stablehlo.tuple", traits={PURE}):
    """Combines several values into one."""

    val: Operands
    result: Result

    def infer(val):
        return TupleType(tuple(val))

    def check(val, result):
        expect_values("I1", "val", val, BufferType, TupleType)
        if not compatible(result, TupleType(tuple(val))):
            fail("C1", f"the result has type {result}, expected {TupleType(tuple(val))}")

    def evaluate(val):
        return tuple(val)


class GetTupleElement(Op, name="stablehlo.get_tuple_element", traits={PURE}):
    """One of the values of a tuple."""

    operand: Operand
    index: I32Int
    result: Result

    def infer(operand, index):
        if not isinstance(operand, TupleType):
            fail("I1", f"operand has type {operand}, expected a tuple")
        if not 0 <= index < len(operand.types):
            fail("C1", f"index has {index}, operand has {len(operand.types)} elements")
        return operand.types[index]

    def check(operand, index, result):
        expected = GetTupleElement.infer(operand, index)
        if not compatible(result, expected):
            fail("C2", f"the result has type {result}, expected {expected}")

    def evaluate(operand, index):
        return operand[index]


class CustomCallApiVersion(IntEnum):
    """How the target of a custom call is called; stored as an `i32`."""

    API_VERSION_UNSPECIFIED = 0
    API_VERSION_ORIGINAL = 1
    API_VERSION_STATUS_RETURNING = 2
    API_VERSION_STATUS_RETURNING_UNIFIED = 3
    API_VERSION_TYPED_FFI = 4


@dataclass(frozen=True)
class OutputOperandAlias(Struct, mnemonic="stablehlo.output_operand_alias"):
    """A result of a custom call, or part of one, that shares its memory with an operand, or part of one."""

    output_tuple_indices: tuple[int, ...]
    operand_index: int
    operand_tuple_indices: tuple[int, ...]


_PASSED_TO_CALLS = (BufferType, FutureType, TupleType, UnrankedTensorType, OpaqueType)


class CustomCall(Op, name="stablehlo.custom_call"):
    """Calls the target that is registered as `call_target_name` in `trivium.ir.custom_calls`."""

    inputs: Operands
    call_target_name: str
    has_side_effect: bool = False
    backend_config: Attribute | None = None
    api_version: I32Int = CustomCallApiVersion.API_VERSION_ORIGINAL
    called_computations: tuple[SymbolRef, ...] = ()
    operand_layouts: tuple[DenseElements, ...] | None = None
    result_layouts: tuple[DenseElements, ...] | None = None
    output_operand_aliases: tuple[OutputOperandAlias, ...] = ()
    result_tilings: tuple[Attribute, ...] | None = None
    results: Results

    @property
    def is_pure(self) -> bool:
        """Whether neither the op nor the table says that the call has effects."""
        known = CUSTOM_CALLS.get(self.call_target_name)
        return not self.has_side_effect and not (known is not None and known.effects)

    def check(
        inputs,
        call_target_name,
        backend_config,
        api_version,
        operand_layouts,
        result_layouts,
        output_operand_aliases,
        results,
    ):
        expect_values("I1", "inputs", inputs, *_PASSED_TO_CALLS)
        expect_values("O1", "results", results, *_PASSED_TO_CALLS)
        if api_version not in iter(CustomCallApiVersion):
            fail("I5", f"api_version has {api_version}, expected 0 to {max(CustomCallApiVersion)}")
        kind = Dictionary if api_version == CustomCallApiVersion.API_VERSION_TYPED_FFI else str
        if backend_config is not None and not isinstance(backend_config, kind):
            version = CustomCallApiVersion(api_version).name
            fail("I4", f"backend_config has {backend_config!r}, expected a {kind.__name__} for {version}")
        if (operand_layouts is None) != (result_layouts is None):
            fail("", "has layouts of only one of operands and results, expected both or none")
        if operand_layouts is not None:
            packed = len(results) == 1 and isinstance(results[0], TupleType)
            _check_layouts("operand", inputs, operand_layouts)
            _check_layouts("result", results[0].types if packed else results, result_layouts)
        for alias in output_operand_aliases:
            _check_alias(alias, inputs, results)
        check_buffers(call_target_name, inputs, results, output_operand_aliases)

    def evaluate(op, inputs):
        return evaluate_custom_call(op, inputs)


_NAMESPACED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*(\.[a-zA-Z0-9_$]+)+")


class Composite(Op, name="stablehlo.composite"):
    """An op composed of others: the function `decomposition` defines the meaning of `name`."""

    inputs: Operands
    name: str
    composite_attributes: Dictionary = Dictionary()
    decomposition: SymbolRef
    version: I32Int = 0
    composite_regions: Regions
    results: Results

    def check(inputs, name, results):
        expect_values("I1", "inputs", inputs, TupleType)
        expect_values("O1", "results", results, TupleType)
        if not _NAMESPACED.fullmatch(name):
            fail("C1", f"name has {name!r}, expected a name with its namespace, as in 'namespace.op'")

    def check_symbols(op, symbols):
        check_callee(op, op.decomposition, symbols, ("C2", "C3", "C4"))

    def evaluate(inputs, decomposition, context):
        return context.call(decomposition.name, inputs)


def _check_types(label, name, types, others, other_name="results", agree=compatible):
    if len(types) != len(others):
        fail(label, f"{other_name} has {len(others)} values, {name} has {len(types)}")
    for index, (kind, other) in enumerate(zip(types, others, strict=True)):
        if not agree(kind, other):
            fail(label, f"{other_name}[{index}] has type {other}, {name}[{index}] has {kind}")


def _check_no_arguments(label, name, region):
    outputs_of(region)
    if region.arguments:
        fail(label, f"{name} has {len(region.arguments)} arguments, expected none")


def _check_branches(branches):
    if not branches:
        fail("C1", "has no branches, expected at least one")


def _check_layouts(name, types, layouts):
    if len(types) != len(layouts):
        fail("", f"has {len(layouts)} {name} layouts, expected {len(types)}")
    for index, (kind, layout) in enumerate(zip(types, layouts, strict=True)):
        rank = kind.rank if isinstance(kind, TensorType) else 0
        if layout.type.shape != (rank,):
            fail("", f"{name} {index} has a layout of {layout.type}, expected an order of its {rank} dimensions")
        if sorted(layout.array.tolist()) != list(range(rank)):
            fail("", f"{name} {index} has layout {layout.array.tolist()}, expected an order of its {rank} dimensions")


def _check_alias(alias, inputs, results):
    if not 0 <= alias.operand_index < len(inputs):
        fail("I7", f"an alias has operand index {alias.operand_index}, expected one below {len(inputs)}")
    packed = results[0] if len(results) == 1 else TupleType(tuple(results))
    mine = _part("operand", inputs[alias.operand_index], alias.operand_tuple_indices)
    theirs = _part("result", packed, alias.output_tuple_indices)
    if not compatible(mine, theirs):
        fail("I7", f"an alias joins an operand of type {mine} and a result of type {theirs}, expected one type")


def _part(name, kind, indices):
    for index in indices:
        if not isinstance(kind, TupleType) or not 0 <= index < len(kind.types):
            fail("I7", f"an alias has tuple index {index} into the {name} of type {kind}")
        kind = kind.types[index]
    return kind
