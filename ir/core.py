"""The mechanics of a program: values with their uses, operations linked into blocks, blocks in regions. What an op
*is* comes from its declaration (`trivium.ir.declare`); nothing here knows a single op."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from trivium.ir.location import UNKNOWN, Location
from trivium.ir.types import Type

MAX_NESTING = 64
"""How deep regions may be nested, in text, in artifacts and in memory; real programs stay below ten."""


class Value:
    """An operand or result of ops. The keys of `uses` are (operation, operand index) pairs, in order of creation."""

    __slots__ = ("name_hint", "type", "uses")

    def __init__(self, type: Type, name_hint: str = ""):
        self.type: Any = type
        self.uses: dict[tuple[Operation, int], None] = {}
        self.name_hint = name_hint

    @property
    def users(self) -> list[Operation]:
        """The operations that use this value, each once."""
        return list(dict.fromkeys(operation for operation, _ in self.uses))

    def replace_all_uses_with(self, other: Value) -> None:
        """Replaces this value by `other` wherever it is an operand."""
        for operation, index in list(self.uses):
            operation.set_operand(index, other)

    @property
    def defining_op(self) -> Operation | None:
        """The operation whose result this is; `None` for a block argument."""
        return None


class OpResult(Value):
    """A result of an operation."""

    __slots__ = ("index", "owner")

    def __init__(self, type: Type, owner: Operation, index: int):
        super().__init__(type)
        self.owner = owner
        self.index = index

    @property
    def defining_op(self) -> Operation:
        return self.owner


class BlockArgument(Value):
    """An argument of a block: of a function, or of the region of an op. `location` is where it came from."""

    __slots__ = ("block", "index", "location")

    def __init__(self, type: Type, block: Block, index: int, name_hint: str = "", location: Location = UNKNOWN):
        super().__init__(type, name_hint)
        self.block = block
        self.index = index
        self.location = location


class Operation:
    """One step of a program, with operands, attributes, regions and results.

    `attributes` has the declared attributes as Python values; `extra` has all others, verbatim. The operations of a
    block are linked in both directions; `block` is `None` while an operation is not in a block.
    """

    __slots__ = (
        "_next",
        "_operands",
        "_previous",
        "attributes",
        "block",
        "extra",
        "location",
        "regions",
        "results",
        "segments",
    )

    NAME: ClassVar[str] = ""

    def __init__(
        self,
        operands: Sequence[Value] = (),
        result_types: Sequence[Type] = (),
        attributes: dict[str, Any] | None = None,
        regions: Sequence[Region] = (),
        extra: Mapping[str, Any] | None = None,
        location: Location = UNKNOWN,
        segments: Mapping[str, tuple[int, ...]] | None = None,
    ):
        """Links an operation without any checks. `segments` has, under `operands` and `results`, the sizes of the
        declared groups where the counts alone do not determine them."""
        self._operands = tuple(operands)
        self.results = tuple([OpResult(kind, self, index) for index, kind in enumerate(result_types)])
        self.attributes = attributes if attributes is not None else {}
        self.regions = tuple(regions)
        self.extra: dict[str, Any] = dict(extra) if extra else {}
        self.location = location
        self.segments = segments
        self.block: Block | None = None
        self._previous: Operation | None = None
        self._next: Operation | None = None
        for index, value in enumerate(self._operands):
            value.uses[self, index] = None
        for region in self.regions:
            region.parent = self

    # Operands

    @property
    def operands(self) -> tuple[Value, ...]:
        return self._operands

    def set_operand(self, index: int, value: Value) -> None:
        """Replaces one operand."""
        del self._operands[index].uses[self, index]
        self._operands = (*self._operands[:index], value, *self._operands[index + 1 :])
        value.uses[self, index] = None

    @property
    def operand_types(self) -> tuple[Type, ...]:
        return tuple([value.type for value in self._operands])

    @property
    def result_types(self) -> tuple[Type, ...]:
        return tuple([value.type for value in self.results])

    @property
    def is_used(self) -> bool:
        """Whether any result has a use."""
        return any(value.uses for value in self.results)

    # Place

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region contains this one."""
        return self.block.region.parent if self.block is not None and self.block.region is not None else None

    @property
    def next(self) -> Operation | None:
        return self._next

    @property
    def previous(self) -> Operation | None:
        return self._previous

    def detach(self) -> Self:
        """Takes the operation out of its block; operands and uses stay."""
        if self.block is not None:
            self.block._unlink(self)
        return self

    def erase(self) -> None:
        """Removes the operation, and all inside it, from the program. Its results must be unused."""
        assert not self.is_used, f"{self.NAME} is erased while its results are used"
        self.detach()
        for operation in self.walk():
            for index, value in enumerate(operation._operands):
                value.uses.pop((operation, index), None)

    def walk(self) -> Iterator[Operation]:
        """Yields this operation and all operations inside it, outer before inner. The caller may erase an operation
        once it has been yielded, if its regions are no longer needed."""
        return _walk([iter((self,))])

    def clone(self, mapping: dict[Value, Value] | None = None) -> Self:
        """Returns a copy, including regions. `mapping` translates the operands that it contains, and receives the new
        values."""
        mapping = mapping if mapping is not None else {}
        return _clone(self, mapping)

    # Effects; the declaration layer refines them.

    @property
    def is_pure(self) -> bool:
        """Whether the operation may be removed when unused, and repeated. By default, an operation has effects."""
        return False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.NAME}>"


class Block:
    """A list of operations with arguments."""

    __slots__ = ("_first", "_last", "arguments", "region")

    def __init__(self, argument_types: Iterable[Type] = (), operations: Iterable[Operation] = ()):
        self.arguments: list[BlockArgument] = []
        self.region: Region | None = None
        self._first: Operation | None = None
        self._last: Operation | None = None
        for kind in argument_types:
            self.add_argument(kind)
        for operation in operations:
            self.append(operation)

    def add_argument(self, type: Type, name_hint: str = "", location: Location = UNKNOWN) -> BlockArgument:
        argument = BlockArgument(type, self, len(self.arguments), name_hint, location)
        self.arguments.append(argument)
        return argument

    def erase_argument(self, index: int) -> None:
        """Removes an argument, which must be unused."""
        assert not self.arguments[index].uses, "a used block argument is erased"
        del self.arguments[index]
        for position, argument in enumerate(self.arguments):
            argument.index = position

    @property
    def first(self) -> Operation | None:
        return self._first

    @property
    def last(self) -> Operation | None:
        return self._last

    @property
    def terminator(self) -> Operation:
        """The last operation; every complete block ends in a terminator."""
        assert self._last is not None, "the block is empty"
        return self._last

    def __iter__(self) -> Iterator[Operation]:
        operation = self._first
        while operation is not None:
            following = operation._next
            yield operation
            # Meanwhile the caller may have erased or moved the operation, or inserted others after it.
            operation = operation._next if operation.block is self else following

    def __reversed__(self) -> Iterator[Operation]:
        operation = self._last
        while operation is not None:
            before = operation._previous
            yield operation
            operation = operation._previous if operation.block is self else before

    def append(self, operation: Operation) -> None:
        self.insert(operation, before=None)

    def insert(self, operation: Operation, before: Operation | None) -> None:
        """Inserts an operation before another one of this block, or at the end."""
        assert operation.block is None, f"{operation.NAME} is already in a block"
        previous = self._last if before is None else before._previous
        operation.block, operation._previous, operation._next = self, previous, before
        if previous is None:
            self._first = operation
        else:
            previous._next = operation
        if before is None:
            self._last = operation
        else:
            before._previous = operation

    def _unlink(self, operation: Operation) -> None:
        previous, following = operation._previous, operation._next
        if previous is None:
            self._first = following
        else:
            previous._next = following
        if following is None:
            self._last = previous
        else:
            following._previous = previous
        operation.block = operation._previous = operation._next = None


class Region:
    """Blocks inside an operation. Every op of StableHLO has regions of one block."""

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Iterable[Block] = ()):
        self.blocks: list[Block] = []
        self.parent: Operation | None = None
        for block in blocks:
            self.append(block)

    def append(self, block: Block) -> Block:
        block.region = self
        self.blocks.append(block)
        return block

    @property
    def block(self) -> Block:
        """The only block."""
        assert len(self.blocks) == 1, f"the region has {len(self.blocks)} blocks, expected 1"
        return self.blocks[0]

    @property
    def arguments(self) -> list[BlockArgument]:
        return self.block.arguments

    @property
    def terminator(self) -> Operation:
        return self.block.terminator

    def walk(self) -> Iterator[Operation]:
        """Yields all operations inside, outer before inner."""
        return _walk(_blocks_of([self]))

    def free_values(self) -> list[Value]:
        """Returns the values that are used inside and defined outside, each once, in order of first use."""
        inside: set[Value] = set()
        free: dict[Value, None] = {}
        for block in self.blocks:
            inside.update(block.arguments)
        for operation in self.walk():
            free.update((value, None) for value in operation.operands if value not in inside)
            inside.update(operation.results)
            inside.update(
                argument for region in operation.regions for block in region.blocks for argument in block.arguments
            )
        return [value for value in free if value not in inside]

    def clone(self, mapping: dict[Value, Value] | None = None) -> Region:
        """Returns a copy; see `Operation.clone`."""
        mapping = mapping if mapping is not None else {}
        copies = []
        for block in self.blocks:
            copy = Block()
            for argument in block.arguments:
                mapping[argument] = copy.add_argument(argument.type, argument.name_hint, argument.location)
            copies.append(copy)
        for block, copy in zip(self.blocks, copies, strict=True):
            for operation in block:
                copy.append(_clone(operation, mapping))
        return Region(copies)


def _walk(stack: list[Iterator[Operation]]) -> Iterator[Operation]:
    """Yields the operations of the iterators, the last one's first, each before those inside it."""
    while stack:
        for operation in stack[-1]:
            yield operation
            if operation.regions:
                stack += _blocks_of(operation.regions)
                break
        else:
            stack.pop()


def _blocks_of(regions: Iterable[Region]) -> list[Iterator[Operation]]:
    """The operations of all blocks; the first block is last."""
    return [iter(block) for region in regions for block in region.blocks][::-1]


def _clone(operation: Operation, mapping: dict[Value, Value]) -> Any:
    copy = operation.__class__.__new__(operation.__class__)
    Operation.__init__(
        copy,
        [mapping.get(value, value) for value in operation._operands],
        [value.type for value in operation.results],
        dict(operation.attributes),
        [region.clone(mapping) for region in operation.regions] if operation.regions else (),
        operation.extra,
        operation.location,
        operation.segments,
    )
    for old, new in zip(operation.results, copy.results, strict=True):
        new.name_hint = old.name_hint
        mapping[old] = new
    return copy
