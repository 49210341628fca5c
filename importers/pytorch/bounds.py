"""The inputs of an exported program whose sizes are open: which sizes the symbols are, what the caller pins them to,
and what PyTorch assumed of them when it traced the program. A call with other sizes is an error, as in PyTorch."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, SupportsIndex

import sympy
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod, ToFloat, TruncToInt

from trivium.importers.pytorch.context import Context
from trivium.importers.pytorch.symbols import Symbols, symbolic
from trivium.ir import ops
from trivium.ir.core import Block, Value
from trivium.ir.errors import Error, UnsupportedOpError

Shape = Sequence[int | None]
"""A shape that the caller gives; `None` is a size that stays dynamic."""

SMALL = 2
"""PyTorch traces with at least this size, and lets programs that are valid for it run with smaller ones."""


class Bounds:
    """The tensors among a program's inputs, by node, and the conditions on their sizes."""

    def __init__(self, program: ExportedProgram, inputs: Mapping[fx.Node, str]):
        self.program = program
        self.metas = {node: node.meta["val"] for node in inputs if isinstance(node.meta["val"], torch.Tensor)}
        self.names = {node: inputs[node] for node in self.metas}

    def pinned(self, shapes: Mapping[str, Shape]) -> Symbols:
        """Returns the symbols that `shapes` fixes, by the names of inputs."""
        unknown = sorted(set(shapes) - set(self.names.values()))
        if unknown:
            raise Error(f"shapes has {', '.join(unknown)}, expected inputs: {', '.join(self.names.values())}")
        values: dict[sympy.Basic, Any] = {}
        for node, name in self.names.items():
            if name in shapes:
                self._pin(name, self.metas[node].shape, shapes[name], values)
        return Symbols(values)

    def _pin(self, name: str, shape: Sequence[Any], given: Shape, values: dict[sympy.Basic, Any]) -> None:
        listed = tuple(str(symbolic(extent) or extent) for extent in shape)
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) != len(shape):
            raise Error(f"shapes gives input {name} {given!r}, expected a shape like ({', '.join(listed)})")
        for extent, wanted in zip(shape, given, strict=True):
            if wanted is None:
                continue
            if not isinstance(wanted, SupportsIndex) or isinstance(wanted, bool):
                raise Error(f"shapes gives input {name} {given!r}, expected numbers, or None for a dynamic size")
            expression = sympy.sympify(symbolic(extent) if symbolic(extent) is not None else int(extent))
            found = expression.subs(values)
            if not found.is_number:
                symbol, factor, offset = _linear(found)
                values[symbol], rest = divmod(operator.index(wanted) - offset, factor)
                found = expression.subs(values) if not rest else None
            if found != operator.index(wanted):
                raise Error(f"shapes gives input {name} {tuple(given)}, expected a shape like ({', '.join(listed)})")

    def declare(self, emit: Context, values: Mapping[fx.Node, Value]) -> None:
        """Adds the sizes of the program's arguments to the symbols, and what must hold of them."""
        sizes = [
            (expression, emit.extent(values[node], d))
            for node, meta in self.metas.items()
            if node in values
            for d, extent in enumerate(meta.shape)
            if (expression := symbolic(extent)) is not None
        ]
        known = emit.symbols.values
        for expression, size in sorted(sizes, key=lambda entry: not entry[0].is_Symbol):
            missing = [symbol for symbol in expression.free_symbols if symbol not in known]
            if missing:
                symbol, factor, offset = _linear(
                    expression.subs({x: n for x, n in known.items() if isinstance(n, int)})
                )
                known[symbol] = (size - offset) // factor
        for expression, size in sizes:
            if emit.symbols.evaluate(emit, expression) != size:
                self._require(emit, sympy.Eq(expression, size_symbol := sympy.Dummy()), {size_symbol: size})
        for condition, text in self._conditions():
            self._require(emit, condition, {}, text)

    def _require(self, emit: Context, condition: sympy.Basic, more: Mapping[sympy.Basic, Any], text: str = "") -> None:
        """Adds a check of the sizes that a call has."""
        message = f"the sizes of the inputs do not agree with the exported program, which has {text or condition}"
        symbols = Symbols({**emit.symbols.values, **more}) if more else emit.symbols
        holds = symbols.condition(emit, condition)
        if holds is False:
            raise Error(message)
        if isinstance(holds, Value):
            emit.add(
                ops.CustomCall(
                    [holds],
                    call_target_name="shape_assertion",
                    api_version=ops.CustomCallApiVersion.API_VERSION_STATUS_RETURNING,
                    has_side_effect=True,
                    extra={"error_message": message.replace("{", "{{")},
                    results=[],
                )
            )

    def require(self, symbols: Symbols) -> None:
        """Rejects sizes, all of them numbers, for which the program does not hold."""
        emit = Context(Block())
        emit.symbols = symbols
        for condition, text in self._conditions():
            self._require(emit, condition, {}, text)

    def _conditions(self) -> Iterator[tuple[sympy.Basic, str]]:
        given = {symbol for meta in self.metas.values() for extent in meta.shape for symbol in _free_symbols(extent)}
        for expression, interval in self.program.range_constraints.items():
            if not expression.free_symbols <= given:
                continue  # how many elements there are, within bounds that follow from the sizes of inputs
            name = self._name(expression)
            if interval.lower.is_Integer and interval.lower > SMALL:
                yield sympy.Ge(expression, interval.lower), f"{name} >= {interval.lower}"
            if interval.upper.is_Integer and interval.upper < (1 << 62):
                yield sympy.Le(expression, interval.upper), f"{name} <= {interval.upper}"
        roots = self._roots()
        for code in getattr(self.program, "_guards_code", None) or ():
            yield sympy.sympify(_Guard(roots).visit(ast.parse(code, mode="eval").body)), code

    def _name(self, expression: sympy.Basic) -> str:
        """Returns the first size of an input that an expression is."""
        for node, meta in self.metas.items():
            for d, extent in enumerate(meta.shape):
                if symbolic(extent) == expression:
                    return f"{self.names[node]}.shape[{d}]"
        return str(expression)

    def _roots(self) -> dict[str, Any]:
        """Returns the descriptions of the inputs, in the structure and with the names of the module's parameters."""
        signature = self.program.module_call_graph[0].signature
        spec = self.program.call_spec.in_spec
        if signature is None or spec is None or not signature.forward_arg_names:
            return {}
        user = iter(self.program.graph_signature.user_inputs)
        metas = {node.name: node.meta["val"] for node in self.program.graph.find_nodes(op="placeholder")}
        leaves = [metas.get(name) if isinstance(name, str) else name for name in user]
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        names = signature.forward_arg_names[: len(args)]
        return {**dict(zip(names, args, strict=False)), **_variadic(names, args), **kwargs}


def _variadic(names: Sequence[str], args: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """Returns the arguments of `*name`, which PyTorch names `name_0`, `name_1`, ..., after all others."""
    name, separator, last = names[-1].rpartition("_") if names else ("", "", "")
    if not separator or not last.isdecimal():
        return {}
    count = int(last) + 1
    is_numbered = list(names[-count:]) == [f"{name}_{i}" for i in range(count)]
    return {name: args[-count:]} if is_numbered else {}


def _free_symbols(extent: Any) -> set[sympy.Basic]:
    expression = symbolic(extent)
    return set() if expression is None else expression.free_symbols


def _linear(expression: sympy.Basic) -> tuple[sympy.Basic, int, int]:
    """Returns the symbol, the factor and the offset of an expression of one symbol."""
    symbols = list(expression.free_symbols)
    if len(symbols) == 1:
        offset = expression.subs(symbols[0], 0)
        factor = sympy.expand((expression - offset) / symbols[0])  # type: ignore[operator]
        if factor.is_Integer and offset.is_Integer and factor > 0:
            return symbols[0], int(factor), int(offset)
    raise UnsupportedOpError(f"an input has the size {expression}, expected a multiple of one size plus a number")


class _Guard(ast.NodeVisitor):
    """Reads a condition as PyTorch writes it, in terms of the sizes of inputs: `L['x'].size()[0] % 2 == 0`."""

    BINARY: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {
        **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Pow: operator.pow},
        **{ast.FloorDiv: FloorDiv, ast.Mod: Mod},
    }
    COMPARE: ClassVar[dict[type, Callable[[Any, Any], Any]]] = {
        **{ast.Eq: sympy.Eq, ast.NotEq: sympy.Ne, ast.Lt: sympy.Lt, ast.LtE: sympy.Le},
        **{ast.Gt: sympy.Gt, ast.GtE: sympy.Ge},
    }

    def __init__(self, roots: Mapping[str, Any]):
        self.roots = roots

    def generic_visit(self, node: ast.AST) -> Any:
        raise UnsupportedOpError(f"the program assumes {ast.unparse(node)}, expected a condition on sizes of inputs")

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self._from(self.BINARY, node, node.op)(
            *map(sympy.sympify, (self.visit(node.left), self.visit(node.right)))
        )

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        found = self.visit(node.operand)
        return sympy.Not(found) if isinstance(node.op, ast.Not) else -found

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        return (sympy.And if isinstance(node.op, ast.And) else sympy.Or)(*map(self.visit, node.values))

    def visit_Compare(self, node: ast.Compare) -> Any:
        sides = [self.visit(side) for side in (node.left, *node.comparators)]
        pairs = zip(node.ops, sides, sides[1:], strict=False)
        return sympy.And(*(self._from(self.COMPARE, node, op)(a, b) for op, a, b in pairs))

    def visit_Call(self, node: ast.Call) -> Any:
        match node.func:
            case ast.Attribute(value=of, attr="size") if not node.args:
                return [symbolic(x) if symbolic(x) is not None else int(x) for x in self.visit(of).shape]
            case ast.Attribute(value=ast.Name(id="math"), attr="trunc"):
                return TruncToInt(*map(self.visit, node.args))
            case ast.Attribute(value=ast.Name(id="torch"), attr="sym_float"):
                return ToFloat(*map(self.visit, node.args))
            case ast.Name(id="Max" | "max" | "Min" | "min" as name):
                return (Max if name.title() == "Max" else Min)(*map(self.visit, node.args))
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        found = self.roots if isinstance(node.value, ast.Name) and node.value.id == "L" else self.visit(node.value)
        key = self.visit(node.slice)
        try:
            return found[key]
        except (LookupError, TypeError):
            return self.generic_visit(node)

    def _from(
        self, table: Mapping[type, Callable[[Any, Any], Any]], node: ast.AST, op: ast.AST
    ) -> Callable[[Any, Any], Any]:
        return table[type(op)] if type(op) in table else self.generic_visit(node)
