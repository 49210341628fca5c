"""Running folds: loops in order that combine what they carry with one more term in each iteration."""

from __future__ import annotations

from trivium.compiler.kernel.structure import Apply, Block, Instruction, Loop, Register, Store, walk


def running_fold(loop: Loop) -> tuple[Apply, Register] | None:
    """Returns the instruction of a running fold that combines what is carried with a term, and the term; None for all
    other loops."""
    if loop.kind != "sequential" or loop.combiner is None or len(loop.inits) != 1 or len(loop.extents) != 1:
        return None
    (carried,) = loop.body.parameters[1:]
    users = [i for i in walk(loop.body) if carried in i.operands or any(carried in b.yields for b in i.blocks)]
    made = next((i for i in loop.body.instructions if i in users), None)
    if len(users) != 1 or not isinstance(made, Apply) or made.op != loop.combiner:
        return None
    terms = [argument for argument in made.arguments if argument is not carried]
    return (made, terms[0]) if len(terms) == 1 and loop.body.yields == [made.result] else None


def parts(loop: Loop, made: Apply) -> tuple[list[Instruction], list[Instruction]]:
    """Returns the instructions of a running fold that need nothing of the fold, in order, and all that follow it, of
    which the stores are a part."""
    known: set[Register] = {made.result}
    early: list[Instruction] = []
    late: list[Instruction] = []
    for instruction in loop.body.instructions:
        if instruction is made:
            continue
        inside = [*walk(Block(instructions=[instruction]))]
        reads = {operand for one in inside for operand in one.operands}
        reads |= {value for one in inside for block in one.blocks for value in block.yields}
        if reads & known or any(isinstance(one, Store) for one in inside):
            late.append(instruction)
            known.update(instruction.results)
        else:
            early.append(instruction)
    return early, late
