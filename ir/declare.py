"""The declaration layer: an op is a class whose annotated fields are its operands, attributes, regions and results.

    class Concatenate(Op, name="stablehlo.concatenate", traits={PURE}):
        \"\"\"Joins `inputs` along `dimension`, in the order given.\"\"\"

        inputs: Operands
        dimension: int
        result: Result

        def infer(inputs, dimension): ...             # the result's type, where it follows from the operands
        def check(inputs, dimension, result): ...     # if ...: fail("C2", "inputs[1] has ..., expected ...")
        def check_symbols(op, symbols): ...           # the constraints on the ops that its attributes name
        def evaluate(inputs, dimension): ...          # NumPy; the one statement of meaning

The constructor, the accessors, the structural verifier, text, serialization and the reference page are derived from the
fields. The parameters of `infer`, `check` and `evaluate` name the fields that they need, in any order. The first two
receive *types* for operands and results, Python values for attributes and `Region`s for regions; `check` receives the
op itself as `op`. `symbols` is a `trivium.ir.func.Symbols`. `evaluate` receives arrays for operands, callables for
regions, types for results, and the op itself as `op` and the interpreter as `context`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from trivium.ir.attributes import Attribute
from trivium.ir.codecs import coerce
from trivium.ir.core import Operation, OpResult, Region, Value
from trivium.ir.errors import Error, VerificationError
from trivium.ir.fields import (  # noqa: F401
    REQUIRED,
    AttributeField,
    Field,
    Operand,
    Operands,
    OptionalOperand,
    Regions,
    Result,
    Results,
    Role,
    attribute_getter,
    field_of,
    group_getter,
    group_sizes,
)
from trivium.ir.location import UNKNOWN, Location
from trivium.ir.methods import evaluate_caller, static_caller
from trivium.ir.types import QuantizedType, Type

if TYPE_CHECKING:
    from trivium.ir.func import Symbols


class Trait(Enum):
    """A fact about an op, stated once and used by every pass."""

    PURE = "pure"  # may be removed when unused, repeated, and moved
    RECURSIVE_EFFECTS = "recursive effects"  # has the effects of its regions, and no others
    ELEMENTWISE = "elementwise"  # each element of the result follows from those at the same index
    EXPRESSED = "expressed"  # computes with what quantized elements express; any other op moves the stored integers
    COMMUTATIVE = "commutative"
    TERMINATOR = "terminator"
    ISOLATED = "isolated"  # its regions do not see values from outside
    SYMBOL_TABLE = "symbol table"


PURE, RECURSIVE_EFFECTS, ELEMENTWISE = Trait.PURE, Trait.RECURSIVE_EFFECTS, Trait.ELEMENTWISE
EXPRESSED, COMMUTATIVE, TERMINATOR = Trait.EXPRESSED, Trait.COMMUTATIVE, Trait.TERMINATOR

OPS: dict[str, type[Op]] = {}
"""Every registered op by its full name, `stablehlo.add`."""


class Op(Operation):
    """The base of all declared ops."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]] = ()
    OPERANDS: ClassVar[tuple[Field, ...]] = ()
    ATTRIBUTES: ClassVar[tuple[AttributeField, ...]] = ()
    REGIONS: ClassVar[tuple[Field, ...]] = ()
    RESULTS: ClassVar[tuple[Field, ...]] = ()
    DEFAULTS: ClassVar[Mapping[str, object]] = {}
    """The default of every field, by name; `REQUIRED` where there is none."""
    POSITIONAL: ClassVar[tuple[str, ...]] = ()
    """The names of the fields that the constructor takes by position, in order."""
    TRAITS: ClassVar[frozenset[Trait]] = frozenset()
    STATES_GROUPS: ClassVar[bool] = False
    """Whether MLIR writes the sizes of the op's groups of operands and results even when they follow from the
    counts."""
    INFER: ClassVar[Callable[[Op], Any] | None] = None
    CHECK: ClassVar[Callable[[Op], None] | None] = None
    CHECK_SYMBOLS: ClassVar[Callable[[Op, Symbols], None] | None] = None

    def __init_subclass__(
        cls, name: str = "", traits: set[Trait] | frozenset[Trait] = frozenset(), **kwargs: Any
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls.TRAITS = frozenset().union(traits, *(getattr(base, "TRAITS", ()) for base in cls.__bases__))
        if not name:  # a family of ops, not an op
            return
        if name in OPS:
            raise Error(f"op {name} is declared twice, by {OPS[name].__module__} and {cls.__module__}")
        cls.NAME = name
        _declare(cls)
        OPS[name] = cls

    def __init__(
        self,
        *values: object,
        location: Location = UNKNOWN,
        extra: Mapping[str, Attribute] | None = None,
        **named: object,
    ):
        """Takes operands, then attributes and regions, in declared order or by name; those with a default only by name.
        Result types are inferred, or passed by name (`result=`) where they do not follow from the operands or should be
        less precise. Raises `VerificationError`."""
        cls = type(self)
        given = _bind(cls, values, named)
        operands, operand_sizes = _flatten(cls.OPERANDS, given, Value, cls.NAME)
        regions, _ = _flatten(cls.REGIONS, given, Region, cls.NAME)
        attributes = {
            field.name: coerce(field.codec, cls.NAME, field.name, value)
            for field in cls.ATTRIBUTES
            if (value := given[field.name]) is not None
        }
        segments = {"operands": operand_sizes} if cls._unequal(cls.OPERANDS, operand_sizes) else None
        # Linked without results first: `infer` reads operand types and attributes through the op itself.
        super().__init__(operands, (), attributes, regions, extra, location, segments)
        try:
            self._set_results(*cls._result_types(self, given))
            if cls.CHECK is not None:
                cls.CHECK(self)
        except Exception as error:
            for index, value in enumerate(operands):
                value.uses.pop((self, index), None)
            if isinstance(error, VerificationError):
                text = f"{cls.short_name()}({', '.join(str(value.type) for value in operands)})"
                prefixed(error, cls).add(inside=text, source=location.describe() or None)
            raise

    @classmethod
    def create(
        cls,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        attributes: dict[str, Any] | None = None,
        regions: Sequence[Region] = (),
        extra: Mapping[str, Attribute] | None = None,
        location: Location = UNKNOWN,
        segments: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Self:
        """Builds an op without checks, for readers of files: `verify` reports errors later, and better."""
        op = cls.__new__(cls)
        Operation.__init__(op, operands, result_types, attributes, regions, extra, location, segments)
        for field in cls.ATTRIBUTES:
            if field.name not in op.attributes and field.default not in (REQUIRED, None):
                op.attributes[field.name] = field.default
        return op

    @classmethod
    def short_name(cls) -> str:
        """Returns the name without its dialect."""
        return cls.NAME.partition(".")[2]

    def has_trait(self, trait: Trait) -> bool:
        return trait in self.TRAITS

    @property
    def is_pure(self) -> bool:
        if Trait.PURE in self.TRAITS:
            return True
        if Trait.RECURSIVE_EFFECTS not in self.TRAITS:
            return False
        return all(
            op.is_pure or Trait.TERMINATOR in getattr(op, "TRAITS", ())
            for region in self.regions
            for block in region.blocks
            for op in block
        )

    @property
    def is_quantized(self) -> bool:
        """Whether an operand or a result has quantized elements."""
        values = (*self._operands, *self.results)
        return any(isinstance(getattr(value.type, "element_type", None), QuantizedType) for value in values)

    EVALUATE: ClassVar[Callable[..., Any]]
    """The declared `evaluate`, as a function of the op, its operands, its regions and a context. It is called by
    `ops.quantization.evaluate_op`, which handles quantized elements."""

    # Groups of operands and results

    @classmethod
    def _unequal(cls, fields: tuple[Field, ...], sizes: tuple[int, ...]) -> bool:
        if len(fields) < 2:
            return False
        variadic = [size for field, size in zip(fields, sizes, strict=True) if field.arity]
        return len(variadic) > 1 and len(set(variadic)) > 1

    def _result_types(self, given: dict[str, Any]) -> tuple[list[Type], tuple[int, ...]]:
        cls = type(self)
        stated = [given[field.name] for field in cls.RESULTS]
        if any(kind is None for kind in stated):
            if cls.INFER is None:
                names = ", ".join(f"{field.name}=" for field in cls.RESULTS)
                raise VerificationError(f"the result type does not follow from the operands, expected {names}")
            inferred = cls.INFER(self)
            inferred = (inferred,) if len(cls.RESULTS) == 1 else inferred
            stated = [mine if mine is not None else theirs for mine, theirs in zip(stated, inferred, strict=True)]
        groups = [list(kind) if field.arity == "*" else [kind] for field, kind in zip(cls.RESULTS, stated, strict=True)]
        return [kind for group in groups for kind in group], tuple(map(len, groups))

    def _set_results(self, result_types: Sequence[Type], sizes: tuple[int, ...]) -> None:
        self.results = tuple(OpResult(kind, self, index) for index, kind in enumerate(result_types))
        if self._unequal(type(self).RESULTS, sizes):
            self.segments = {**(self.segments or {}), "results": sizes}


def prefixed(error: Error, cls: type[Op]) -> Error:
    """Prefixes an error's message with the op's name, unless it already is."""
    prefix = f"{cls.short_name()}: "
    if not error.message.startswith((prefix, f"{cls.NAME}: ")):
        error.message = prefix + error.message
    return error


# From annotations to fields


def _declare(cls: type[Op]) -> None:
    hints: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        if base not in (Op, Operation, object):
            names = vars(sys.modules[base.__module__])
            hints.update(
                {name: _evaluated(text, names) for name, text in vars(base).get("__annotations__", {}).items()}
            )
    cls.FIELDS = tuple(field_of(cls, name, hint) for name, hint in hints.items())
    cls.OPERANDS, cls.REGIONS, cls.RESULTS = (
        tuple(field for field in cls.FIELDS if field.role is role) for role in (Role.OPERAND, Role.REGION, Role.RESULT)
    )
    cls.ATTRIBUTES = tuple(field for field in cls.FIELDS if isinstance(field, AttributeField))
    cls.DEFAULTS = {field.name: field.default for field in cls.FIELDS}
    inputs = (*cls.OPERANDS, *cls.ATTRIBUTES, *cls.REGIONS)
    cls.POSITIONAL = tuple(field.name for field in inputs if field.default is REQUIRED)
    for fields, source in ((cls.OPERANDS, "_operands"), (cls.REGIONS, "regions"), (cls.RESULTS, "results")):
        for index, field in enumerate(fields):
            if field.name != source:  # the list of all results has that name already
                setattr(cls, field.name, property(group_getter(fields, index, source)))
    for field in cls.ATTRIBUTES:
        setattr(cls, field.name, property(attribute_getter(field.name)))
    cls.__signature__ = _signature(cls)  # type: ignore[attr-defined]
    for method, slot in (("infer", "INFER"), ("check", "CHECK")):
        if (function := getattr(cls, method, None)) is not None:
            setattr(cls, slot, staticmethod(static_caller(cls, cls.FIELDS, method, function)))
    if (function := getattr(cls, "check_symbols", None)) is not None:
        cls.CHECK_SYMBOLS = staticmethod(function)
    if (function := getattr(cls, "evaluate", None)) is not None:
        cls.EVALUATE = staticmethod(evaluate_caller(cls, cls.FIELDS, function))


def _evaluated(annotation: object, names: dict[str, object]) -> object:
    return eval(annotation, names) if isinstance(annotation, str) else annotation


def _signature(cls: type[Op]) -> inspect.Signature:
    either, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    inputs = sorted((f for f in cls.FIELDS if f.role is not Role.RESULT), key=_order)
    parameters = [
        inspect.Parameter(f.name, either, default=inspect.Parameter.empty) for f in inputs if f.default is REQUIRED
    ]
    parameters += [inspect.Parameter(f.name, keyword, default=f.default) for f in inputs if f.default is not REQUIRED]
    parameters += [inspect.Parameter(f.name, keyword, default=None) for f in cls.RESULTS]
    parameters += [
        inspect.Parameter("location", keyword, default=UNKNOWN),
        inspect.Parameter("extra", keyword, default=None),
    ]
    return inspect.Signature(parameters)


def _order(field: Field) -> int:
    return (Role.OPERAND, Role.ATTRIBUTE, Role.REGION, Role.RESULT).index(field.role)


# From a call to operands, attributes, regions


def _bind(cls: type[Op], values: tuple[object, ...], named: dict[str, object]) -> dict[str, Any]:
    """Returns the value of every field, by name."""
    if len(values) > len(cls.POSITIONAL):
        raise VerificationError(f"{cls.NAME} has {len(values)} arguments, expected at most {len(cls.POSITIONAL)}")
    given: dict[str, Any] = dict(zip(cls.POSITIONAL, values, strict=False))
    for name, value in named.items():
        if name in given or name not in cls.DEFAULTS:
            known = ", ".join(cls.DEFAULTS)
            raise VerificationError(f"{cls.NAME} has an unexpected argument {name}, expected {known}")
        given[name] = value
    given = {**cls.DEFAULTS, **given}
    for field in cls.FIELDS:
        if given[field.name] is REQUIRED:
            raise VerificationError(f"{cls.NAME} lacks its {field.role.value} {field.name}")
    return given


def _flatten(
    fields: tuple[Field, ...], given: dict[str, Any], kind: type, op: str
) -> tuple[list[Any], tuple[int, ...]]:
    flat: list[Any] = []
    sizes = []
    for field in fields:
        value = given[field.name]
        group = list(value) if field.arity == "*" else [] if value is None and field.arity else [value]
        for item in group:
            if not isinstance(item, kind):
                raise VerificationError(
                    f"{op}: {field.role.value} {field.name} has {type(item).__name__}, expected {kind.__name__}"
                )
        flat += group
        sizes.append(len(group))
    return flat, tuple(sizes)
