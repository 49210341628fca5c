"""Equal kernels, and equal batches of them, are emitted once."""

from __future__ import annotations

from tests.backends.gpu.test_batches import TARGET, negated, value
from trivium.backends.gpu.assembly import assembly, emit_program
from trivium.backends.gpu.nvptx import Nvptx
from trivium.compiler.program import Program


def test_equal_batches_share_a_function() -> None:
    a, b, c, d = (value(name, 128 * place) for place, name in enumerate("abcd"))
    steps = [negated(a, b), negated(a, c), negated(b, a), negated(b, d)]
    emitted = emit_program(Program("main", steps=list(steps), arena_size=512), Nvptx(), TARGET)
    works = [emitted.work[step] for step in steps]
    assert works[0].functions == works[2].functions
    assert (works[0].arguments, works[2].arguments) == ((a, b, c), (b, a, d))
    assert not works[1].functions
    assert not works[3].functions
    assert emitted.text.count("define ptx_kernel") == 1
    assert emitted.text.count("define internal") == 1


def test_functions_of_blocks_are_part_of_the_kernel() -> None:
    a, b, c = (value(name, 128 * place) for place, name in enumerate("abc"))
    program = Program("main", steps=[negated(a, b), negated(a, c)], arena_size=384)
    text = assembly(emit_program(program, Nvptx(), TARGET).text, Nvptx(), TARGET)
    assert text.count(".entry") == 1
    assert "call" not in text
