"""Code for AMD GPUs: LLVM assembles it without spilling registers, and a linker makes code objects of it. What it
computes, `test_hip.py` tests."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.binding as llvm
import llvmlite.ir as ll
import pytest

from tests.backends.gpu import code_object, tasks
from tests.backends.gpu.test_cuda import two_launches
from tests.backends.gpu.test_nvptx import sample
from trivium.backends.gpu import lld, plan
from trivium.backends.gpu.amdgcn import LAYOUT, TRIPLE, WAVES, Amdgcn, target
from trivium.backends.gpu.assembly import assemble_program, assembler, emit_program
from trivium.backends.llvm.code import I32, Code
from trivium.ir.errors import Error

ASSEMBLED = 8

FAMILIES = ("gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201")
"""Architectures whose instructions differ."""

needs_linker = pytest.mark.skipif(lld.installed() is None, reason="no ld.lld is on the path or in ROCM_PATH")


@pytest.mark.parametrize("architecture", WAVES)
def test_the_layout_is_llvm_s(architecture: str) -> None:
    llvm.initialize_all_targets()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=architecture)
    assert str(machine.target_data) == LAYOUT


@pytest.mark.parametrize("architecture", FAMILIES)
def test_nothing_is_spilled(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    kernels = "\n".join(filter(None, (tasks.code_object((architecture, number)) for number in sample(ASSEMBLED))))
    assert kernels
    assert not tasks.beyond_budget(kernels)


@pytest.mark.parametrize("architecture", FAMILIES)
def test_kernel_metadata(architecture: str) -> None:
    """Addresses of memory are all that a kernel is given, and its blocks and waves have the size that it is for."""
    facts = target(architecture)
    dialect = Amdgcn(facts.warp)
    text = emit_program(two_launches(), dialect, facts).text
    (kernel,) = code_object.kernels(assembler().compile(text, dialect.assembling(facts)))
    assert kernel.name == "k0_negate"
    assert (kernel.threads, kernel.wave) == (256, WAVES[architecture])
    assert kernel.arguments == ("global_buffer",) * 4
    assert (kernel.spilled, kernel.private) == (0, 0)


@needs_linker
@pytest.mark.parametrize("architecture", WAVES)
def test_a_code_object(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    facts = target(architecture)
    _, code = plan.from_bytes(assemble_program(two_launches(), Amdgcn(facts.warp), facts).code)
    assert code_object.metadata(code)["amdhsa.target"] == f"{TRIPLE}--{architecture}"
    assert code_object.exported(code) >= {"k0_negate", "k0_negate.kd"}
    assert code[8] == 3, "the version of the interface in ELF's header is that of the fifth version of code objects"


def module_of(emit: Callable[[Code, Amdgcn], object]) -> str:
    """Returns the text of a module with one kernel, whose instructions `emit` writes."""
    module, dialect = ll.Module("words"), Amdgcn(64)
    builder = ll.IRBuilder(dialect.define(module, "k0", 1, 64).append_basic_block("entry"))
    emit(Code(builder, target("gfx90a")), dialect)
    builder.ret_void()
    return dialect.text(module)


def test_a_barrier_orders_memory() -> None:
    """The simulator cannot tell: its threads see at once what others write."""
    lines = [line.strip() for line in module_of(lambda code, dialect: dialect.barrier(code)).splitlines()]
    place = next(number for number, line in enumerate(lines) if line.startswith("call void"))
    assert lines[place - 1] == 'fence syncscope("workgroup") release'
    assert next(line for line in lines[place + 1 :] if line) == 'fence syncscope("workgroup") acquire'


def test_threads_exchange_words_in_bytes() -> None:
    def emit(code: Code, dialect: Amdgcn) -> None:
        dialect.shuffled(code, I32(7), 32)
        dialect.shuffled(code, I32(7), None)

    text = module_of(emit)
    assert "ds.bpermute" in text
    assert "readfirstlane" in text


def test_memory_of_a_thread_has_an_address_space() -> None:
    text = module_of(lambda code, dialect: code.builder.alloca(ll.ArrayType(ll.IntType(8), 16)))
    assert "alloca [16 x i8], addrspace(5)" in text
    assert "addrspacecast ptr addrspace(5)" in text


def test_atomic_operations_are_the_device_s() -> None:
    def emit(code: Code, dialect: Amdgcn) -> None:
        pointer = code.builder.function.args[0]
        code.builder.atomic_rmw("fadd", pointer, ll.Constant(ll.FloatType(), 1.0), "monotonic")
        code.builder.cmpxchg(pointer, I32(0), I32(1), "monotonic", "monotonic")

    text = module_of(emit)
    assert text.count('syncscope("agent") monotonic') == 2
    facts = target("gfx90a")
    code = assembler().compile(text, Amdgcn(64).assembling(facts))
    assert code_object.kernels(code)[0].name == "k0"


def test_unknown_architectures() -> None:
    with pytest.raises(Error, match="unknown AMD architecture 'gfx803', expected one of gfx908, gfx90a, "):
        target("gfx803")


def test_a_code_object_s_numbers() -> None:
    """The reader of this test knows the forms of MessagePack that LLVM uses."""
    data = bytes.fromhex("83a161cd012ca162c3a16392a178cc80")
    assert code_object.unpacked(data, 0) == ({"a": 300, "b": True, "c": ["x", 128]}, len(data))
    assert code_object.unpacked(bytes.fromhex("dc0002d90161ce00010000"), 0)[0] == ["a", 65536]
