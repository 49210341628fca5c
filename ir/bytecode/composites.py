"""CHLO in artifacts, which have no such ops. Like XLA, we write each as a `stablehlo.composite` with its name and its
decomposition, which becomes the op again when it is read. The XLA of JAX 0.9 writes some as a `stablehlo.custom_call`,
which is read as well."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from trivium.ir.attributes import Attribute, Dictionary, Enumeration, Integer, Struct, SymbolRef, integer_array
from trivium.ir.builder import Builder
from trivium.ir.codecs import Ints, codec_of, coerce, decode
from trivium.ir.core import Block, Operation, Region
from trivium.ir.declare import OPS, REQUIRED, AttributeField, Op
from trivium.ir.decompositions import decompose
from trivium.ir.errors import Error, Unsupported, UnsupportedOpError
from trivium.ir.func import FuncReturn, Function, Module, lookup, symbols
from trivium.ir.ops import Composite, CustomCall, RaggedDotDimensionNumbers
from trivium.ir.types import I32, I64, FunctionType

_VERSION = 1
"""The version of the composites and custom calls that XLA writes and reads."""
_CALL_ATTRIBUTES, _CALL_VERSION = "mhlo.attributes", "mhlo.version"
"""Where such a custom call has the op's attributes, and its version."""
_GROUPS = {"operands": "operandSegmentSizes", "results": "resultSegmentSizes"}

_INTS = codec_of(Ints)
_STRUCTS = {RaggedDotDimensionNumbers.__name__: RaggedDotDimensionNumbers}


def is_chlo(op: Operation) -> bool:
    return op.NAME.startswith("chlo.")


# Writing


def compose(root: Module) -> None:
    """Turns all CHLO ops into composites. Raises `UnsupportedOpError` with those that have no decomposition."""
    missing: list[Unsupported] = []
    homes: dict[Module, _Decompositions] = {}
    # Inner ops first, so that a decomposition copies composites.
    for op in reversed([op for op in root.walk() if is_chlo(op)]):
        assert isinstance(op, Op)
        home = _home(op)
        decompositions = homes.setdefault(home, _Decompositions(home))
        try:
            _replace(op, decompositions.name_for(op))
        except UnsupportedOpError as error:
            missing += error.ops
    if missing:
        raise UnsupportedOpError("the program has ops that cannot be written with StableHLO's own", missing[::-1])


def _home(op: Operation) -> Module:
    """Returns the module whose functions the op can name."""
    home = op.parent_op
    while not isinstance(home, Module):
        assert home is not None
        home = home.parent_op
    return home


def _replace(op: Op, decomposition: str) -> None:
    attributes = {
        "name": op.NAME,
        "composite_attributes": Dictionary(_encoded(op)),
        "decomposition": SymbolRef(decomposition),
        "version": _VERSION,
    }
    regions = [region.clone() for region in op.regions]
    composite = Composite.create(op.operands, op.result_types, attributes, regions, location=op.location)
    Builder.in_front_of(op).add(composite)
    for old, new in zip(op.results, composite.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


class _Decompositions:
    """The functions that are added to a module. Identical ops share one."""

    def __init__(self, module: Module):
        self.module = module
        self.names = {name for name, _ in symbols(module)}
        self.found: dict[Hashable, str] = {}

    def name_for(self, op: Op) -> str:
        """Returns the name of the function that defines the op, and adds the function if necessary."""
        if op.regions:
            return self._added(op)
        key = op.NAME, op.operand_types, op.result_types, tuple(sorted(op.attributes.items(), key=lambda item: item[0]))
        if key not in self.found:
            self.found[key] = self._added(op)
        return self.found[key]

    def _added(self, op: Op) -> str:
        name = _unused(f"{op.NAME}.impl", self.names)
        self.names.add(name)
        kind = FunctionType(op.operand_types, op.result_types)
        function = Function(name, kind, _body(op), sym_visibility="private", location=op.location)
        self.module.body.block.append(function)
        return name


def _body(op: Op) -> Region:
    """Returns a region that computes the same as the op, without CHLO."""
    block = Block(op.operand_types)
    copy = op.clone(dict(zip(op.operands, block.arguments, strict=True)))
    block.append(copy)
    builder = Builder(block, location=op.location)
    builder.add(FuncReturn(copy.results))
    while found := [inner for inner in block if is_chlo(inner)]:
        for inner in found:
            assert isinstance(inner, Op)
            try:
                results = decompose(inner, Builder.in_front_of(inner))
            except Error as error:
                raise error.add(inside=inner.NAME, source=inner.location.describe() or None) from None
            for old, new in zip(inner.results, results, strict=True):
                old.replace_all_uses_with(new)
            inner.erase()
    return Region([block])


def _unused(name: str, names: set[str]) -> str:
    """Returns the name, with a number appended if it is taken."""
    candidates = (f"{name}_{number}" for number in range(len(names)))
    return name if name not in names else next(candidate for candidate in candidates if candidate not in names)


def _encoded(op: Op) -> dict[str, Attribute]:
    """Returns the op's attributes that differ from their defaults, in forms that artifacts have."""
    given = {
        field.name: _plain(field.codec.encode(op.attributes[field.name]))
        for field in type(op).ATTRIBUTES
        if op.attributes.get(field.name) not in (None, field.default)
    }
    groups = {_GROUPS[what]: integer_array(sizes, I32) for what, sizes in (op.segments or {}).items()}
    return {**op.extra, **given, **groups}


def _plain(value: Attribute) -> Attribute:
    """Converts enumerations to words, and structs to lists of lists."""
    match value:
        case Enumeration():
            return value.value
        case Struct():
            return tuple(integer_array(entries, I64) for _, entries in value.items())
        case tuple():
            return tuple(map(_plain, value))
    return value


# Reading


def recompose(root: Module) -> None:
    """Turns the composites and custom calls that stand for CHLO ops back into these ops, and erases their
    decompositions unless they are still used. What does not fit its op stays."""
    replaced: dict[Module, set[str]] = {}
    for given in [op for op in root.walk() if isinstance(op, Composite | CustomCall)]:
        op = _recomposed(given)
        if op is not None:
            if isinstance(given, Composite):
                replaced.setdefault(_home(given), set()).add(given.decomposition.name)
            Builder.in_front_of(given).add(op)
            for old, new in zip(given.results, op.results, strict=True):
                old.replace_all_uses_with(new)
            given.erase()
    for module, names in replaced.items():
        _erase_unused(module, names)


def _recomposed(op: Composite | CustomCall) -> Op | None:
    """Returns the op that a composite or a custom call stands for, if any."""
    name, version, given = _described(op)
    cls = OPS.get(name) if name.startswith("chlo.") else None
    if cls is None or version != _VERSION:
        return None
    try:
        segments = {what: _sizes(given.pop(name)) for what, name in _GROUPS.items() if name in given}
        attributes = {field.name: _decoded(cls, field, given.pop(field.name)) for field in _given(cls, given)}
        return _checked(cls, op, attributes, given, segments or None)
    except Error:
        return None


def _described(op: Composite | CustomCall) -> tuple[str, int | None, dict[str, Attribute]]:
    """Returns the name of what an op stands for, the version, and the attributes."""
    if isinstance(op, Composite):
        return op.name, op.version, {**op.composite_attributes, **op.extra}
    extra = dict(op.extra)
    version, attributes = extra.pop(_CALL_VERSION, None), extra.pop(_CALL_ATTRIBUTES, None)
    if not isinstance(version, Integer) or not isinstance(attributes, Dictionary):
        return op.call_target_name, None, {}
    return op.call_target_name, version.value, {**attributes, **extra}


def _checked(
    cls: type[Op],
    given: Composite | CustomCall,
    attributes: dict[str, Any],
    extra: dict[str, Any],
    segments: Mapping[str, tuple[int, ...]] | None,
) -> Op | None:
    """Returns the op, or `None` if what is given has the wrong structure."""
    for declared, items in (
        (cls.OPERANDS, given.operands),
        (cls.RESULTS, given.results),
        (cls.REGIONS, given.regions),
    ):
        if len(items) != len(declared) and not any(field.arity for field in declared):
            return None
    if any(field.default is REQUIRED and field.name not in attributes for field in cls.ATTRIBUTES):
        return None
    regions = [region.clone() for region in given.regions]
    kinds = given.result_types
    op = cls.create(given.operands, kinds, attributes, regions, extra, given.location, segments)
    try:
        if cls.CHECK is not None:
            cls.CHECK(op)
    except Error:
        op.erase()
        raise
    return op


def _given(cls: type[Op], given: Mapping[str, object]) -> Iterator[AttributeField]:
    return (field for field in cls.ATTRIBUTES if field.name in given)


def _decoded(cls: type[Op], field: AttributeField, value: Attribute) -> object:
    """The inverse of `_plain`."""
    kind = _STRUCTS.get(field.codec.what)
    if kind is not None and isinstance(value, tuple) and len(value) == len(fields(kind)):
        value = kind(*[decode(_INTS, cls.NAME, field.name, entries) for entries in value])
    words = value if isinstance(value, tuple) else (value,)
    read = coerce if all(isinstance(word, str) for word in words) else decode
    return read(field.codec, cls.NAME, field.name, value)


def _sizes(value: Attribute) -> tuple[int, ...]:
    return decode(_INTS, "chlo", "sizes of groups", value)


def _erase_unused(module: Module, names: set[str]) -> None:
    """Erases the private functions of these names that nothing refers to, until all that are left are used."""
    functions = module.functions
    unused = [functions[name] for name in names if name in functions]
    while unused := [function for function in unused if function.sym_visibility == "private"]:
        used = {target for op in module.walk() for target in _targets(op, names)}
        erased = [function for function in unused if function not in used]
        if not erased:
            return
        for function in erased:
            function.erase()
        unused = [function for function in unused if function in used]


def _targets(op: Operation, names: set[str]) -> Iterator[Operation | None]:
    """Yields the ops that an op refers to by one of these names."""
    for name in _symbols_of((*op.attributes.values(), *op.extra.values())):
        if name in names:
            yield lookup(op, SymbolRef(name))


def _symbols_of(value: object) -> Iterator[str]:
    """Yields the symbols that an attribute names."""
    if isinstance(value, SymbolRef):
        yield value.name
    elif isinstance(value, tuple | Dictionary):
        for entry in value.values() if isinstance(value, Dictionary) else value:
            yield from _symbols_of(entry)
