"""The context of a PyTorch rule: the emitter's vocabulary, the types that PyTorch itself assigned to the node's
results, and its type promotion."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import fx
from torch._ops import OpOverload

from trivium.importers import context
from trivium.importers.binding import signature_of
from trivium.importers.common import Rules
from trivium.importers.dynamic import DynamicEmitter
from trivium.importers.extents import Extent, Size
from trivium.importers.pytorch.symbols import Symbols
from trivium.importers.pytorch.types import DTYPES, element_type_of, to_array
from trivium.ir.core import Block, Operation, Value
from trivium.ir.location import UNKNOWN, Location
from trivium.ir.types import UI64, ElementType, IntegerType, TensorType, is_boolean, is_complex, is_float

rule = Rules("PyTorch")
"""The table of all PyTorch rules; names are those of operator overloads, `aten.add.Tensor`."""

Number = bool | int | float | complex

Operand = Value | Size | Number | str | torch.dtype | torch.device | fx.GraphModule | Sequence["Operand"] | None
"""The result of converting a node, or an argument that is in the graph itself."""

Meta = torch.Tensor | torch.SymInt | torch.SymFloat | torch.SymBool | Number | Sequence["Meta"] | None
"""PyTorch's description of a node: fake tensors, or numbers."""

Rule = Callable[..., Operand]


@dataclass(frozen=True)
class Check:
    """A value that decides whether a run of the program has failed: `verify` raises PyTorch's error of it."""

    value: Value
    verify: Callable[[torch.Tensor], None]


class Context(DynamicEmitter, context.Context[fx.GraphModule, Operand]):
    """An emitter at the node under conversion."""

    used: tuple[bool, ...] = ()
    """Which of the node's results are used; unused ones need not be computed."""

    metas: dict[Value, torch.Tensor]
    """The fake tensors of the operands, for the rules that need strides."""

    open_metas: dict[Value, torch.Tensor]
    """The same, of the operands that have dynamic sizes."""

    randomness: Randomness | None = None
    """The source of the state for random draws; there is none inside control flow."""

    checks: list[Check] | None = None
    """What is verified after each run; nothing inside control flow, or if the program runs without PyTorch."""

    checks_values: bool = False
    """Whether indices and divisors are checked."""

    symbols: Symbols
    """What is known of symbolic sizes."""

    described: Sequence[Meta] = ()
    """PyTorch's descriptions of the node's results."""

    origin: str = ""
    """The op that PyTorch has decomposed into the node among others."""

    def __init__(self, block: Block, before: Operation | None = None, location: Location = UNKNOWN):
        super().__init__(block, before, location)
        self.symbols = Symbols()

    def describe(self, op: str, metas: Meta) -> None:
        """Sets the op under conversion, with PyTorch's description of its results."""
        self.op = op
        self.described = list(metas) if isinstance(metas, list | tuple) else [metas]
        kinds = (self.symbols.type_of(x) if isinstance(x, torch.Tensor) else None for x in self.described)
        self.results = tuple(kinds)
        self.used = (True,) * len(self.results)

    @property
    def meta(self) -> torch.Tensor:
        """PyTorch's description of the node's only (or first) result."""
        return self._of_tensor(self.described[0])

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The shape of the node's only (or first) result."""
        return self.shape_of(self.described[0])

    def shape_of(self, meta: Meta) -> tuple[Extent, ...]:
        """Returns the shape of a tensor that PyTorch describes."""
        meta = self._of_tensor(meta)
        return tuple(self.symbols.extent(self, extent) for extent in meta.shape)

    def _of_tensor(self, meta: Meta) -> torch.Tensor:
        assert isinstance(meta, torch.Tensor), f"{self.op} has no tensor result"
        return meta

    def within(self, block: Block) -> Self:
        inner = super().within(block)
        inner.randomness, inner.checks, inner.checks_values = None, None, False
        return inner

    def check(self, value: Value, verify: Callable[[torch.Tensor], None]) -> None:
        """Calls `verify` on a value after each run."""
        if self.checks is not None:
            self.checks.append(Check(value, verify))

    # Numbers and promotion

    def tensor(self, x: Value | Number | Size, element_type: ElementType) -> Value:
        """Returns a value, or a number as a 0-d constant, with an element type."""
        if isinstance(x, Value | Size):
            return self.convert(x.value if isinstance(x, Size) else x, element_type)
        return self.scalar(as_element(x, element_type), element_type)

    def scalar_like(self, number: Number, x: Value) -> Value:
        """Returns a number as a 0-d constant of the element type of `x`."""
        return self.tensor(number, x.type.element_type)

    def promoted(self, *operands: Value | Number | Size) -> list[Value]:
        """Returns the operands with their common element type."""
        kind = promote(*operands)
        return [self.tensor(x, kind) for x in operands]

    def convert(self, x: Value, element_type: ElementType) -> Value:
        """Converts like PyTorch's `to`: a boolean is whether the number is not zero; floats are truncated to
        integers."""
        return self.not_zero(x) if is_boolean(element_type) else super().convert(x, element_type)

    def not_zero(self, x: Value) -> Value:
        """Whether each element is not zero."""
        kind = x.type.element_type
        return x if is_boolean(kind) else self.compare("NE", x, self.scalar(0, kind))

    def constant(self, tensor: torch.Tensor, name: str = "") -> Value:
        """Returns a constant that shares a tensor's memory."""
        value = self.elements(to_array(tensor))
        value.name_hint = name
        return value

    def shaped(self, x: Value) -> Value:
        """Returns `x` with the element type and, broadcast, the shape of the node's result."""
        return self.broadcast(self.convert(x, self.result.element_type), self.shape)


STATE = TensorType((2,), UI64)
"""The type of the random generator's state: a key and a counter."""


class Randomness:
    """The state of the random generator while a graph is converted: a given one, or else the first draw adds it to the
    function as its last argument. Each draw replaces it by the state that follows."""

    def __init__(self, block: Block, state: Value | None = None):
        self.block = block
        self.draws = False
        self._state = state

    @property
    def state(self) -> Value:
        if self._state is None:
            self._state = self.block.add_argument(STATE, "random")
            self.draws = True
        return self._state

    @state.setter
    def state(self, following: Value) -> None:
        self._state = following


def as_element(number: Number, element_type: ElementType) -> Number:
    """Converts a Python number to an element type as PyTorch would; integers wrap around."""
    if is_boolean(element_type):
        return bool(number)
    if is_float(element_type) or is_complex(element_type):
        return number
    assert isinstance(element_type, IntegerType), element_type
    bits = 1 << element_type.width
    value = int(number.real if isinstance(number, complex) else number) % bits
    return value - bits if element_type.is_signed and value >= bits // 2 else value


def promote(*operands: Value | Number | Size) -> ElementType:
    """Applies PyTorch's type promotion: tensors with dimensions decide, then 0-d tensors, then numbers; a later group
    only participates if it is of a higher category (boolean, integer, float, complex)."""
    dimensioned = [DTYPES[x.type.element_type] for x in operands if isinstance(x, Value) and x.type.rank]
    zero_dimensional = [DTYPES[x.type.element_type] for x in operands if isinstance(x, Value) and not x.type.rank]
    numbers = [_dtype_of_number(x) for x in operands if not isinstance(x, Value)]
    result = None
    for group in (dimensioned, zero_dimensional, numbers):
        for dtype in group[1:]:
            group[0] = torch.promote_types(group[0], dtype)
        if group and (result is None or _category(group[0]) > _category(result)):
            higher = group[0]
            # A float scalar promotes complex and integer tensors to the default dtype, or to the width that they have.
            result = higher if result is None or group is not numbers else _lifted(result, higher)
    assert result is not None
    return element_type_of(result)


def dims(given: Sequence[int] | int | None, rank: int) -> tuple[int, ...]:
    """Returns dimensions counted from the front, sorted; `None` and the empty list mean all of them."""
    if given is None or (not isinstance(given, int) and not given):
        return tuple(range(rank))
    listed = (given,) if isinstance(given, int) else given
    return tuple(sorted(dim(d, rank) for d in listed))


def dim(given: int, rank: int) -> int:
    """Returns a dimension counted from the front; 0-d tensors count as having one."""
    return given % max(rank, 1)


def spread(given: Sequence[int] | int | None, count: int, default: int = 0) -> tuple[int, ...]:
    """Returns one entry per spatial dimension, where PyTorch allows a single number, or none for the default."""
    listed = (given,) if isinstance(given, int) else tuple(given or (default,))
    return listed * count if len(listed) == 1 else listed


def _dtype_of_number(number: Number | Size) -> torch.dtype:
    if isinstance(number, bool):
        return torch.bool
    if isinstance(number, int | Size):
        return torch.int64
    return torch.get_default_dtype() if isinstance(number, float) else torch.complex64


def _category(dtype: torch.dtype) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype is torch.bool else 1


def _lifted(dtype: torch.dtype, number: torch.dtype) -> torch.dtype:
    if number.is_complex and dtype.is_floating_point:
        return dtype.to_complex()
    return number


WITHOUT_MEANING = frozenset(
    {"device", "layout", "pin_memory", "non_blocking", "memory_format", "requires_grad", "copy", "dtype"}
)
"""Arguments that specify how or where a tensor is stored in memory: a program's values have no such property. And
`dtype`, which the type of the result repeats: a rule that returns another type is detected."""


def bind(
    op: OpOverload, rule: Rule, arguments: Sequence[object], keywords: Mapping[str, object], ctx: Context
) -> tuple[list[object], dict[str, object]]:
    """Returns the arguments for an op's rule: positional arguments of the schema in order, keyword-only ones by name,
    each with the schema's default if it is not given. Arguments that the rule does not take must be at their
    defaults."""
    signature = signature_of(rule)
    positional: list[object] = []
    options: dict[str, object] = {}
    for index, argument in enumerate(op._schema.arguments):
        default = argument.default_value
        value = arguments[index] if index < len(arguments) else keywords.get(argument.name, default)
        if not argument.kwarg_only and len(positional) < signature.count:
            positional.append(value)
        elif argument.name in signature.names:
            options[argument.name] = value
        elif argument.name not in WITHOUT_MEANING and value != default:
            ctx.unsupported(argument.name, value, f"its default, {default}")
    return positional, options
