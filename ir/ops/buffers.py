"""The rules for buffers in custom calls. Three targets create a buffer, fill one, and return its content. All other
calls pass buffers on: each result that is a buffer shares the memory of an operand, and no two share the same one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from trivium.ir.custom_calls import register_custom_call
from trivium.ir.errors import ExecutionError, fail
from trivium.ir.types import BufferType, TensorType, TupleType, Type, UnrankedTensorType, shapes_compatible

if TYPE_CHECKING:
    from trivium.ir.ops.control import CustomCall, OutputOperandAlias


def check_buffers(
    target: str, inputs: Sequence[Type], results: Sequence[Type], aliases: Sequence[OutputOperandAlias]
) -> None:
    """Checks a custom call's buffers against the rules for its target. The aliases were already checked."""
    if target == "CreateBuffer":
        _expect_one("O1", "result", results, BufferType)
        if inputs:
            fail("I1", f"CreateBuffer has {len(inputs)} inputs, expected none")
    elif target in ("Pin", "Unpin"):
        tensor = (TensorType, UnrankedTensorType)
        one = _expect_one("I1", "input", inputs, tensor if target == "Pin" else BufferType)
        other = _expect_one("O1", "result", results, BufferType if target == "Pin" else tensor)
        if not _same_content(one, other):
            fail("O1", f"{target} has a result of type {other}, its input is of type {one}; expected the same array")
    else:
        _check_aliases(inputs, results, aliases)


def _expect_one(label: str, what: str, kinds: Sequence[Type], expected: type[Type] | tuple[type[Type], ...]) -> Type:
    if len(kinds) != 1 or not isinstance(kinds[0], expected):
        word = "a buffer" if expected is BufferType else "a tensor"
        fail(label, f"has {what} types ({', '.join(map(str, kinds))}), expected exactly one, {word}")
    return kinds[0]


def _same_content(one: Type, other: Type) -> bool:
    ranked = not isinstance(one, UnrankedTensorType) and not isinstance(other, UnrankedTensorType)
    return one.element_type is other.element_type and (not ranked or shapes_compatible(one.shape, other.shape))


def _check_aliases(inputs: Sequence[Type], results: Sequence[Type], aliases: Sequence[OutputOperandAlias]) -> None:
    places = list(_buffers(results[0] if len(results) == 1 else TupleType(tuple(results))))
    shared = [alias.output_tuple_indices for alias in aliases]
    for place in places:
        if (count := shared.count(place)) != 1:
            fail("I7", f"the buffer at {list(place)} of the results is in {count} aliases, expected one")
    taken = [
        (alias.operand_index, alias.operand_tuple_indices) for alias in aliases if alias.output_tuple_indices in places
    ]
    for index, place in taken:
        if taken.count((index, place)) > 1:
            fail("I7", f"the buffer at {list(place)} of operand {index} is in several aliases, expected at most one")


def _buffers(kind: Type, place: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yields the positions of the buffers in a type, inside its tuples."""
    if isinstance(kind, BufferType):
        yield place
    if isinstance(kind, TupleType):
        for index, part in enumerate(kind.types):
            yield from _buffers(part, (*place, index))


def _content(op: CustomCall) -> np.ndarray:
    """Returns the initial content of a buffer, which may be anything; here it is zeros."""
    kind = op.results[0].type
    if None in kind.shape:
        raise ExecutionError(f"cannot create a buffer of type {kind}, expected one with static extents")
    return np.zeros(kind.shape, kind.element_type.dtype)


# Values are arrays, in buffers or not. Each buffer is distinct, so calls must not be merged.
register_custom_call("CreateBuffer", evaluate=_content, effects=True)
for _target in ("Pin", "Unpin"):
    register_custom_call(_target, evaluate=lambda op, content: content, effects=True)
