"""A driver that runs the module which NVIDIA's driver would get, on the host: LLVM compiles the same text for this
processor, with the numbers of block and thread as variables, and a launch is a loop over all of them. It proves the
walk and the dialect's arithmetic; not LLVM's code generator for NVIDIA, nor anything about speed. Threads of a block
run one after the other: kernels with barriers need more."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import llvmlite.binding as llvm
import numpy as np

from trivium.backends.cpu.client import Done
from trivium.backends.cpu.target import host
from trivium.backends.gpu.dialect import Assembling, Dialect
from trivium.backends.gpu.nvptx import Nvptx, target

REGISTERS = "tid", "ctaid"

LAUNCH = """
define void @"launch.{name}"(ptr %table, i32 %blocks, i32 %threads) {{
entry:
  br label %outer
outer:
  %block = phi i32 [0, %entry], [%block.next, %latch]
  store i32 %block, ptr @ctaid
  br label %inner
inner:
  %thread = phi i32 [0, %outer], [%thread.next, %inner]
  store i32 %thread, ptr @tid
{loads}
  call void @"{name}"({arguments})
  %thread.next = add i32 %thread, 1
  %more = icmp ult i32 %thread.next, %threads
  br i1 %more, label %inner, label %latch
latch:
  %block.next = add i32 %block, 1
  %again = icmp ult i32 %block.next, %blocks
  br i1 %again, label %outer, label %done
done:
  ret void
}}"""


class Bytes:
    """Memory of the host."""

    def __init__(self, array: np.ndarray):
        self.array, self.nbytes = array, array.nbytes

    def part(self, offset: int, nbytes: int) -> Bytes:
        return Bytes(self.array[offset : offset + nbytes])


class Simulator:
    """A simulated GPU: it loads LLVM's text and runs it on the host."""

    platform: ClassVar[str] = "simulator"

    def __init__(self, architecture: str = "sm_80"):
        self.kind = f"simulated {architecture}"
        self.version = "1"
        self.dialect: Dialect = Nvptx()
        self.target = target(architecture)
        self._engines: list[object] = []

    def allocate(self, nbytes: int) -> Bytes:
        return Bytes(np.full(nbytes, 0xA5, np.uint8))

    def load(self, binary: bytes) -> Mapping[str, Any]:
        text = on_the_host(binary.decode())
        names = re.findall(r'^define void @"(k\d+_\w*)"', text, re.MULTILINE)
        module = llvm.parse_assembly(text)
        module.verify()
        engine = llvm.create_mcjit_compiler(module, host().machine())
        engine.finalize_object()
        self._engines.append(engine)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32)
        return {name: kind(engine.get_function_address(f"launch.{name}")) for name in names}

    def launch(self, kernel: Any, blocks: int, threads: int, arguments: Sequence[Bytes | None]) -> None:
        table = (ctypes.c_void_p * len(arguments))(*(a and a.array.ctypes.data for a in arguments))
        kernel(ctypes.addressof(table), blocks, threads)

    def upload(self, target: Bytes, source: np.ndarray) -> None:
        target.array[:] = source.reshape(-1).view(np.uint8)

    def download(self, target: np.ndarray, source: Bytes) -> None:
        target.reshape(-1).view(np.uint8)[:] = source.array[: target.nbytes]

    def copy(self, target: Bytes, source: Bytes, nbytes: int) -> None:
        target.array[:nbytes] = source.array[:nbytes].copy()

    def event(self) -> Done:
        return Done()


def untouched(text: str, how: Assembling) -> bytes:
    """Stands for the assembler: what is loaded is the text."""
    assert how.text
    return text.encode()


def on_the_host(text: str) -> str:
    """Returns a module of NVIDIA's as one of the host's, with a function that launches each kernel."""
    text = re.sub(r"^target .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r'"nvvm\.maxntid"="\d+"', "", text.replace("ptx_kernel ", ""))
    launches = []
    for name, parameters in re.findall(r'^define void @"(k\d+_\w*)"\((.*?)\)', text.replace("addrspace(1)", ""), re.M):
        count = parameters.count("ptr")
        loads = "\n".join(
            f"  %p{n} = getelementptr ptr, ptr %table, i32 {n}\n  %a{n} = load ptr addrspace(1), ptr %p{n}"
            for n in range(count)
        )
        arguments = ", ".join(f"ptr addrspace(1) %a{n}" for n in range(count))
        launches.append(LAUNCH.format(name=name, loads=loads, arguments=arguments))
    for register in REGISTERS:
        intrinsic = rf'i32 @"llvm\.nvvm\.read\.ptx\.sreg\.{register}\.x"\(\)'
        text = re.sub(rf"^declare *{intrinsic}.*$", "", text, flags=re.MULTILINE)
        text = re.sub(rf"call *{intrinsic}", f"load i32, ptr @{register}", text)
    return "\n".join([text, *(f"@{register} = internal global i32 0" for register in REGISTERS), *launches])
