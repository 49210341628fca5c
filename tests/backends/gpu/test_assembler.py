"""LLVM's code generators for GPUs, which may end the process that they run in."""

from __future__ import annotations

import re
import struct

import pytest

from trivium.backends.gpu.assembler import Assembler
from trivium.backends.gpu.spirv import SpirV, target
from trivium.ir.errors import CompileError

HOW = SpirV().assembling(target())
KERNEL = """target triple = "spirv64-unknown-unknown"
define spir_kernel void @{name}(ptr addrspace(1) %x, {type} %y) {{
  %z = {op} {type} %y, {other}
  %c = icmp ne {type} %z, {other}
  br i1 %c, label %then, label %done
then:
  store {type} %z, ptr addrspace(1) %x
  br label %done
done:
  ret void
}}"""


@pytest.fixture(scope="module")
def assembler() -> Assembler:
    return Assembler()


def numbers(binary: bytes) -> list[int]:
    """Returns the results of all instructions in the test's kernels that have one."""
    words = struct.unpack(f"<{len(binary) // 4}I", binary)
    at, found = 5, []
    with_type_first = {43, 54, 55, 128, 130, 171, 169}  # OpConstant, OpFunction, its parameters, arithmetic
    result_first = {19, 20, 21, 32, 33, 248}  # types, OpLabel
    while at < len(words):
        opcode, length = words[at] & 0xFFFF, words[at] >> 16
        if opcode in with_type_first:
            found.append(words[at + 2])
        elif opcode in result_first:
            found.append(words[at + 1])
        at += length
    return found


def test_no_number_means_two_things_in_later_modules(assembler: Assembler) -> None:
    for _ in range(3):
        for type_, op in (("i64", "add"), ("i8", "sub"), ("i16", "add"), ("i32", "sub")):
            text = KERNEL.format(name="k", type=type_, op=op, other=3)
            found = numbers(assembler.compile(text, HOW))
            assert len(found) > 10
            assert len(found) == len(set(found))


def test_an_end_of_llvm_is_an_error_and_not_the_end(assembler: Assembler) -> None:
    text = KERNEL.format(name="k", type="i128", op="mul", other=3)
    with pytest.raises(CompileError, match=re.escape("LLVM does not compile the module for spirv64")):
        assembler.compile(text, HOW)
    assert assembler.compile(KERNEL.format(name="k", type="i64", op="add", other=3), HOW)[:4] == b"\x03\x02\x23\x07"


def test_a_malformed_module_is_refused(assembler: Assembler) -> None:
    with pytest.raises(CompileError, match="expected"):
        assembler.compile("define what", HOW)


def test_an_ended_server_is_started_again() -> None:
    own = Assembler()
    text = KERNEL.format(name="k", type="i64", op="add", other=3)
    first = own.compile(text, HOW)
    server = own._server
    assert server is not None
    server.kill()
    server.wait()
    assert own.compile(text, HOW) == first
