"""Donation: results in the memory of arguments that the caller gives away. The plan says for each of these arguments
which result may be there: no byte of the result is written as long as the argument is needed, except by a kernel that
reads each element before it writes it. The caller decides in each run whether the two are in one place: programs are
given the address of every argument and of every result."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence

from trivium.compiler.kernel import may_share, storage_bytes
from trivium.compiler.liveness import during
from trivium.compiler.placement import Allocation
from trivium.compiler.program import Array, Input, Launch, Program, Step, operands, walk
from trivium.ir.attributes import Integer
from trivium.ir.func import Function

DONOR, ALIASING = "jax.buffer_donor", "tf.aliasing_output"
"""Attributes with which JAX marks an argument whose memory a run may reuse. The second one says for which result."""

Wishes = Mapping[int, int | None]
"""The arguments that are given away, by number, each with the number of the result that is to be in its memory."""

Together = tuple[int, int, set[Array]]
"""The first and last position of steps that may run at the same time, and the values that they use."""


def wishes(main: Function) -> Wishes:
    """Returns what the attributes of a function say."""
    found: dict[int, int | None] = {}
    for index in range(len(main.function_type.inputs)):
        marks = main.argument_attributes(index)
        if DONOR in marks or ALIASING in marks:
            wish = marks.get(ALIASING)
            found[index] = int(wish.value) if isinstance(wish, Integer) else None
    return found


def share_arguments(
    program: Program,
    points: Mapping[Array, int],
    allocations: Mapping[Array, Allocation],
    wishes: Wishes,
    together: Sequence[Together],
    loops_in_order: bool,
) -> None:
    """Lets results be in the memory of arguments, where that is possible: from then on, the memory of such a result is
    in use as long as its argument is. An argument whose memory cannot be that of the requested result may be that of
    another one."""
    steps = list(walk(program.steps))
    free = list(range(len(program.outputs)))
    for index, wish in sorted(wishes.items(), key=lambda entry: entry[1] is None):
        argument = program.inputs[index]
        for number in sorted(free, key=lambda number: number != wish):
            result = allocations.get(program.outputs[number])
            if result is None or not _fits(argument, result, points, steps, loops_in_order):
                continue
            batches = [(first, last) for first, last, values in together if argument in values]
            if any(_meet(argument, result, steps[first : last + 1]) for first, last in batches):
                continue
            result.points |= points[argument]
            for first, last in batches:
                result.points |= during(first, last)
            argument.storage = Input(index, number)
            free.remove(number)
            break


def _fits(
    argument: Array, result: Allocation, points: Mapping[Array, int], steps: list[Step], loops_in_order: bool
) -> bool:
    """Whether the values of an allocation may be in the memory of an argument, if steps follow one another."""
    if not argument.nbytes == result.nbytes > 0:
        return False
    if any(_element_bytes(value) != _element_bytes(argument) for value in result.values):
        return False
    alive = functools.reduce(operator.or_, (points[value] for value in result.values))
    common = points[argument] & alive
    if common & (common - 1):
        return False
    position, is_after = divmod(common.bit_length() - 1, 2)
    return not common or (not is_after and _works_in_place(steps[position], argument, result, loops_in_order))


def _meet(argument: Array, result: Allocation, steps: Sequence[Step]) -> bool:
    """Whether several of these steps, which may run at the same time, use an argument or values of an allocation."""
    both = {argument, *result.values}
    return sum(not both.isdisjoint(operands(step)) for step in steps) > 1


def _element_bytes(value: Array) -> int:
    return storage_bytes(value.dtype) << value.is_complex


def _works_in_place(step: Step, argument: Array, result: Allocation, loops_in_order: bool) -> bool:
    """Whether a step reads each element of the argument before it writes it."""
    if not isinstance(step, Launch):
        return False
    pairs = list(zip(step.kernel.params, step.arguments, strict=True))
    sources = [param for param, value in pairs if value is argument]
    places = [param for param, value in pairs if value in result.values]
    return (
        [param.mode for param in (*sources, *places)] == ["in", "out"]
        and len(sources) == 1
        and may_share(step.kernel, sources[0], places[0], loops_in_order=loops_in_order)
    )
