"""Runs LLVM's code generators for GPUs, in a separate process for each module. On a module that they cannot compile,
they may abort the process. And the generator for SPIR-V keeps the numbers of blocks from one module to the next, by
their addresses, so that a second module in the same process may use a number twice. A server process that has loaded
LLVM forks for each module, which takes milliseconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict
from typing import IO

import llvmlite.binding as llvm

from trivium.backends.gpu.dialect import Assembling
from trivium.ir.errors import CompileError

_OPTIONS = (("spirv", "--spirv-ext=+SPV_EXT_shader_atomic_float_add"),)
"""Options of LLVM's code generators, which have no other way in."""

_SERVER = "from trivium.backends.gpu.assembler import serve; serve()"

_SUCCEEDED, _FAILED = b"1", b"0"


class Assembler:
    """Compiles modules, one after the other. The server is started when it is first needed, and ends with this
    process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def compile(self, text: str, how: Assembling) -> bytes:
        """Returns the device's code for a module. Raises `CompileError` if LLVM refuses the module, or ends."""
        with self._lock:
            server = self._started()
            assert server.stdin is not None
            assert server.stdout is not None
            try:
                _write(server.stdin, json.dumps({"how": asdict(how), "text": text}).encode())
                outcome, result = _read(server.stdout), _read(server.stdout)
            except (EOFError, OSError) as error:
                self._server = None
                raise CompileError(f"the process that compiles for {how.triple} has ended") from error
        if outcome != _SUCCEEDED:
            raise CompileError(f"LLVM does not compile the module for {how.triple}: {result.decode(errors='replace')}")
        return result

    def _started(self) -> subprocess.Popen[bytes]:
        # A process that was forked must not write into the pipe of its parent.
        if self._server is None or self._server.poll() is not None or self._owner != os.getpid():
            # -P: modules in the working folder must not hide Trivium.
            command = [sys.executable, "-P", "-c", _SERVER]
            self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._owner = os.getpid()
        return self._server


def serve() -> None:
    """Compiles what the parent sends, until it closes the pipe."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for name, option in _OPTIONS:
        llvm.set_option(name, option)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            request = json.loads(_read(source))
        except EOFError:
            return
        _write_all(target, *_in_a_fork(request["text"], Assembling(**request["how"])))


def _in_a_fork(text: str, how: Assembling) -> tuple[bytes, bytes]:
    """Returns whether the compilation succeeded, and the code, or what LLVM said."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as made:
        child = os.fork()
        if not child:
            os.dup2(errors.fileno(), 2)
            os._exit(_compile_to(made, text, how))
        _, status = os.waitpid(child, 0)
        errors.seek(0)
        made.seek(0)
        if status == 0:
            return _SUCCEEDED, made.read()
        lines = errors.read().decode(errors="replace").strip().splitlines()
    chosen = next((line for line in lines if "LLVM ERROR" in line or "Assertion" in line), "; ".join(lines[:3]))
    return _FAILED, (chosen or f"it ended with status {status}").encode()


def _compile_to(file: IO[bytes], text: str, how: Assembling) -> int:
    try:
        file.write(assemble(text, how))
        file.flush()
    except Exception as error:
        os.write(2, str(error).encode())
        return 1
    return 0


def assemble(text: str, how: Assembling) -> bytes:
    """Compiles a module in this process."""
    module = llvm.parse_assembly(text)
    module.verify()
    # Kernels call functions that do the work of one block.
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    target = llvm.Target.from_triple(how.triple)
    machine = target.create_target_machine(cpu=how.cpu, features=how.features, opt=how.optimization)
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return machine.emit_assembly(module).encode() if how.text else machine.emit_object(module)


def _write_all(pipe: IO[bytes], *parts: bytes) -> None:
    for part in parts:
        _write(pipe, part)


def _write(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(8, "little") + data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    header = pipe.read(8)
    size = int.from_bytes(header, "little")
    data = pipe.read(size) if len(header) == 8 else b""
    if len(header) < 8 or len(data) < size:
        raise EOFError
    return data
