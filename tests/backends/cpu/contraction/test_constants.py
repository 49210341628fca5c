"""Constant operands are packed once, before anything runs."""

from __future__ import annotations

from tests.backends.cpu.contraction.cases import assert_close, matmul, normal
from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import host
from trivium.compiler.program import Array, Constant, Input, Launch, Output, Program, Step


def test_a_constant_is_packed_once_for_equal_launches() -> None:
    """The program keeps its own constant, in the shape that the kernel reads."""
    lhs, rhs = normal(1, 100, 64), normal(1, 64, 70)
    case = matmul(lhs, rhs)
    x, y, z = case.kernel.params
    given, weights = Array("x", "f32", x.shape, Input(0)), Array("w", "f32", y.shape, Constant(case.operands[y]))
    results = [Array("z", "f32", z.shape, Output(number)) for number in range(2)]
    launches: list[Step] = [Launch(matmul(lhs, rhs).kernel, (given, weights, result)) for result in results]
    program = Program("twice", [given], results, launches)
    executable = CpuExecutable(assemble_program(program, host()))
    assert len(executable._constants) == 1
    assert executable._constants[0].nbytes > rhs.nbytes
    assert weights in program.values()
    for result in executable.execute(lhs):
        assert_close(result, lhs @ rhs)
