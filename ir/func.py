"""Modules and functions: `builtin.module` and the `func` dialect. Users work with a `Module`: it prints, verifies and
saves itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trivium.ir.attributes import Attribute, Dictionary, Integer, SymbolRef
from trivium.ir.builder import Builder
from trivium.ir.core import Block, BlockArgument, Operation, Region, Value
from trivium.ir.declare import TERMINATOR, Op, Operands, Results, Trait
from trivium.ir.errors import ConstraintKind, Error, VerificationError, fail
from trivium.ir.files import path_of, writing
from trivium.ir.location import UNKNOWN, Location
from trivium.ir.services import SERVICES
from trivium.ir.types import FunctionType, Type


class Module(Op, name="builtin.module", traits={Trait.ISOLATED, Trait.SYMBOL_TABLE}):
    """A program: functions, of which `main` is the entry."""

    sym_name: str | None = None
    sym_visibility: str | None = None
    body: Region

    def check(body):
        if len(body.blocks) != 1 or body.arguments:
            fail("", "its body has no block, or one with arguments; expected one block without arguments")

    @classmethod
    def build(cls, name: str | None = None, functions: Sequence[Function] = (), location: Location = UNKNOWN) -> Module:
        """Builds a module of the given functions."""
        return cls(sym_name=name, body=Region([Block(operations=functions)]), location=location)

    @property
    def functions(self) -> dict[str, Function]:
        """The functions, by name."""
        return {op.sym_name: op for op in self.body.block if isinstance(op, Function)}

    @property
    def main(self) -> Function:
        """The entry: `main`, or the only public function."""
        functions = self.functions
        public = [function for function in functions.values() if function.sym_visibility != "private"]
        if "main" not in functions and len(public) != 1:
            raise Error(f"the module has no function main and {len(public)} public functions, expected one")
        return functions.get("main") or public[0]

    def function(self, name: str) -> Function:
        """Returns the function of that name. Raises an `Error` that lists the others if there is none."""
        functions = self.functions
        if not isinstance(name, str) or name not in functions:
            raise Error(f"the module has no function {name!r}, expected one of {', '.join(functions) or 'none'}")
        return functions[name]

    def verify(self) -> None:
        """Checks the whole program against the specification; raises `VerificationError`."""
        SERVICES.verify(self)

    def save(self, path: str | Path, version: str | None = None) -> None:
        """Writes the program with its locations: as MLIR text (`.mlir`) or as a portable artifact (`.mlirbc`). An
        artifact has the given version of StableHLO, or the lowest version from 1.0.0 on that can express the program.
        """
        path = path_of(path)
        if path.suffix == ".mlirbc":
            data = SERVICES.serialize(self, version)
        elif path.suffix != ".mlir":
            raise Error(f"cannot save {path.name!r}: has the suffix {path.suffix!r}, expected .mlir or .mlirbc")
        elif version is not None:
            raise Error(f"cannot save {path.name!r} for version {version}: text has no version, expected .mlirbc")
        else:
            data = None
        with writing(path) as file:
            if data is None:
                file.writelines(piece.encode() for piece in SERVICES.text_pieces(self, locations=True))
            else:
                file.write(data)

    def text(self, *, elide: bool = True, locations: bool = False) -> str:
        """Returns the program as MLIR text. `elide` leaves out the elements of constants that have more than 64, for
        readability; such a text cannot be parsed. `locations` adds where each op came from."""
        return "".join(SERVICES.text_pieces(self, locations=locations, elide=elide))

    def show(self, path: str | Path | None = None) -> None:
        """Prints the program, without the elements of large constants; or writes the page that shows it, to a file."""
        if path is None:
            print(self)
        elif SERVICES.page is None:
            raise Error("pages are written by the whole package, expected: import trivium")
        else:
            SERVICES.page(self, path)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str | None:
        """Shows the module in a notebook as a graph; `None` if it is too large for one, and is shown as text."""
        return None if SERVICES.page is None else SERVICES.page(self, None) or None

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Shows the module in a notebook."""
        printer.text(str(self))


class Function(Op, name="func.func", traits={Trait.ISOLATED}):
    """A function. Each argument and result has a dictionary of attributes (names, roles, shardings, aliasing)."""

    sym_name: str
    function_type: FunctionType
    sym_visibility: str | None = None
    arg_attrs: tuple[Dictionary, ...] | None = None
    res_attrs: tuple[Dictionary, ...] | None = None
    body: Region

    @classmethod
    def build(
        cls,
        name: str,
        argument_types: Sequence[Type],
        body: Callable[..., Any],
        *,
        arg_attrs: Sequence[Mapping[str, Attribute]] | None = None,
        res_attrs: Sequence[Mapping[str, Attribute]] | None = None,
        visibility: str | None = None,
        location: Location = UNKNOWN,
    ) -> Function:
        """Builds a function: `body(builder, *arguments)` adds the ops and returns the value or values that the function
        returns."""
        block = Block(argument_types)
        builder = Builder(block, location=location)
        returned = body(builder, *block.arguments)
        returned = [returned] if isinstance(returned, Value) else list(returned)
        builder.add(FuncReturn(returned))
        return cls(
            name,
            FunctionType(tuple(argument_types), tuple(value.type for value in returned)),
            Region([block]),
            sym_visibility=visibility,
            arg_attrs=None if arg_attrs is None else [Dictionary(entry) for entry in arg_attrs],
            res_attrs=None if res_attrs is None else [Dictionary(entry) for entry in res_attrs],
            location=location,
        )

    @property
    def is_declaration(self) -> bool:
        return not self.body.blocks

    @property
    def arguments(self) -> list[BlockArgument]:
        return self.body.arguments

    @property
    def returned(self) -> tuple[Value, ...]:
        """The values that the function returns."""
        return self.body.terminator.operands

    def argument_attributes(self, index: int) -> Dictionary:
        return self.arg_attrs[index] if self.arg_attrs else Dictionary()

    def result_attributes(self, index: int) -> Dictionary:
        return self.res_attrs[index] if self.res_attrs else Dictionary()

    def refresh_type(self) -> None:
        """Updates the function's type after its arguments or results changed."""
        inputs = tuple(argument.type for argument in self.arguments)
        self.attributes["function_type"] = FunctionType(inputs, tuple(value.type for value in self.returned))

    def check(op, function_type, sym_visibility, body, arg_attrs, res_attrs):
        if op.block is not None and not isinstance(op.parent_op, Module):
            fail("", f"is in a region of {op.parent_op.NAME}, expected a module")
        for attributes, types, what in (
            (arg_attrs, function_type.inputs, "arguments"),
            (res_attrs, function_type.results, "results"),
        ):
            if attributes is not None and len(attributes) != len(types):
                fail("", f"has attributes for {len(attributes)} {what}, expected {len(types)}")
        if sym_visibility not in (None, "public", "private", "nested"):
            fail("", f"has visibility {sym_visibility!r}, expected public, private or nested")
        if not body.blocks:
            if sym_visibility in (None, "public"):
                fail("", "is public and has no body; a declaration must be private or nested")
            return
        if len(body.blocks) > 1 or body.block.last is None:
            fail("", f"has a body of {len(body.blocks)} blocks, expected one that ends in a return")
        have = tuple(argument.type for argument in body.arguments)
        if have != function_type.inputs:
            fail("", f"its block has arguments ({', '.join(map(str, have))}), its type is {function_type}")
        returned = body.terminator.operand_types
        if returned != function_type.results:
            fail("", f"returns ({', '.join(map(str, returned))}), its type is {function_type}")


class FuncReturn(Op, name="func.return", traits={TERMINATOR}):
    """Ends a function."""

    operands_: Operands

    def check(op):
        if op.block is not None and not isinstance(op.parent_op, Function):
            fail("", "is outside of a function")


class Call(Op, name="func.call"):
    """Calls a function of the module."""

    operands_: Operands
    callee: SymbolRef
    results_: Results

    @property
    def is_pure(self) -> bool:
        """A call has the effects of the functions that it reaches; a recursive one counts as having effects."""
        return _is_pure_call(self)

    def check_symbols(op, symbols):
        check_callee(op, op.callee, symbols)

    def evaluate(operands_, callee, context):
        return context.call(callee.name, operands_)


class Symbols:
    """The named ops of the modules of a program. Each module is read once, at the first lookup."""

    def __init__(self):
        self._tables: dict[Module, dict[str, Operation]] = {}

    def lookup(self, op: Operation, symbol: SymbolRef) -> Operation | None:
        """Returns the op that a symbol names, seen from `op`: in the nearest module around it, then in the nested
        modules of the symbol's path. `None` if there is none."""
        found = op.parent_op
        while found is not None and not isinstance(found, Module):
            found = found.parent_op
        for part in (symbol.name, *symbol.nested):
            if not isinstance(found, Module):
                return None
            found = self._table(found).get(part)
        return found

    def processes(self, op: Operation) -> tuple[int | None, int | None]:
        """Returns the numbers of replicas and of partitions; `None` where the outermost module does not state them."""
        while op.parent_op is not None:
            op = op.parent_op
        stated = [op.extra.get(f"mhlo.num_{kind}") for kind in ("replicas", "partitions")]
        replicas, partitions = (count.value if isinstance(count, Integer) else None for count in stated)
        return replicas, partitions

    def _table(self, module: Module) -> dict[str, Operation]:
        if module not in self._tables:
            self._tables[module] = dict(symbols(module))
        return self._tables[module]


def lookup(op: Operation, symbol: SymbolRef) -> Operation | None:
    """Returns the op that a symbol names, seen from `op`. For many lookups, `Symbols` is faster."""
    return Symbols().lookup(op, symbol)


def check_callee(
    op: Operation, callee: SymbolRef, symbols: Symbols, labels: tuple[str, str, str] = ("", "", "")
) -> None:
    """Checks that a symbol names a function with exactly the op's types. `labels` name the constraints on its
    existence, its operands and its results."""
    function = symbols.lookup(op, callee)
    if callee.nested or not isinstance(function, Function) or function.function_type is None:
        fail(labels[0], f"{callee} is not a function of the module", ConstraintKind.SYMBOL)
    expected = function.function_type
    for what, have, want, label in (
        ("operands", op.operand_types, expected.inputs, labels[1]),
        ("results", op.result_types, expected.results, labels[2]),
    ):
        if have != want:
            fail(label, f"has {what} ({', '.join(map(str, have))}), {callee} is {expected}", ConstraintKind.SYMBOL)


def resolve(op: Operation, symbol: SymbolRef, symbols: Symbols | None = None) -> Function:
    """Returns the function that a symbol names, seen from `op`. Raises `VerificationError` if there is none. For many
    lookups, pass `symbols`."""
    found = (symbols or Symbols()).lookup(op, symbol)
    if not isinstance(found, Function):
        raise VerificationError(
            f"{op.NAME}: {symbol} is not a function of the module", source=op.location.describe() or None
        )
    return found


def symbols(module: Module) -> Iterator[tuple[str, Operation]]:
    """Yields the named ops of a module."""
    for op in module.body.block:
        name = op.attributes.get("sym_name")
        if name is not None:
            yield name, op


def _is_pure_call(call: Call) -> bool:
    """Visits each reachable function once, with an explicit stack, because calls may be many and deeply nested."""
    active: dict[Function, Iterator[Operation]] = {}  # the functions around the current op, each with its remaining ops
    done: set[Function] = set()
    symbols = Symbols()
    op: Operation | None = call
    while True:
        if isinstance(op, Call):
            function = symbols.lookup(op, op.callee)
            if not isinstance(function, Function) or function.is_declaration or function in active:
                return False
            if function not in done:
                active[function] = function.body.walk()
        elif op is None:
            done.add(active.popitem()[0])
        elif not (_is_transparent(op) or op.is_pure):
            return False
        if not active:
            return True
        op = next(next(reversed(active.values())), None)


def _is_transparent(op: Operation) -> bool:
    """Whether an op has no effects except those of the ops inside it."""
    traits = getattr(op, "TRAITS", ())
    return Trait.TERMINATOR in traits or Trait.RECURSIVE_EFFECTS in traits
