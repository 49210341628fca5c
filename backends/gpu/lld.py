"""LLVM's linker, which turns the object file that LLVM assembles for an AMD GPU into a code object: AMD's driver loads
nothing else. The linker is part of ROCm, and of LLVM."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from trivium.backends.llvm import elf
from trivium.ir.errors import CompileError

AMDGPU = 224
"""ELF's number of the machine."""

NEWEST, OLDEST = 25, 15
"""The versions of LLVM that are looked for. Older ones do not know the fifth version of code objects."""

NAMES = ("ld.lld", "lld", *(f"ld.lld-{version}" for version in range(NEWEST, OLDEST - 1, -1)))
"""The names of the linker: LLVM's own, and those of distributions that have several versions."""


def rocm() -> str:
    """Returns where ROCm is installed, if it is."""
    return os.environ.get("ROCM_PATH", "/opt/rocm")


def folder() -> str:
    """Returns where ROCm has its linker."""
    return str(Path(rocm(), "llvm", "bin"))


@functools.cache
def installed() -> str | None:
    """Returns the linker that is on the path, or that of ROCm; None without one that is new enough."""
    found = (shutil.which(name, path=path) for path in (None, folder()) for name in NAMES)
    return next((program for program in found if program and _version(program) >= OLDEST), None)


def _version(program: str) -> int:
    output = subprocess.run([*_command(program), "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"LLD (\d+)", output)
    return int(found[1]) if found else 0


def _command(program: str) -> list[str]:
    """Returns how a linker is called: `lld` is several ones."""
    return [program, "-flavor", "gnu"] if Path(program).name == "lld" else [program]


def linked(code: bytes) -> bytes:
    """Returns the code object of an object file."""
    program = installed()
    if program is None:
        raise CompileError(
            f"there is no linker for code of AMD GPUs: no ld.lld, lld, or ld.lld-{OLDEST} to ld.lld-{NEWEST} of LLVM "
            f"{OLDEST} or newer is on the path or in {folder()}, expected one: it is part of ROCm, and of LLVM"
        )
    with tempfile.TemporaryDirectory(prefix="trivium-") as made:
        source, result = Path(made, "program.o"), Path(made, "program.hsaco")
        source.write_bytes(code)
        command = [*_command(program), "-shared", "--no-undefined", str(source), "-o", str(result)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"{program} does not link the program: {done.stderr.strip()[:1000]}")
        return checked(result.read_bytes(), program)


def checked(code: bytes, program: str) -> bytes:
    """Returns a code object, after a look at its header."""
    machine = np.frombuffer(code, elf.HEADER, 1)["machine"][0] if len(code) >= elf.HEADER.itemsize else None
    if machine != AMDGPU or not elf.is_shared_object(code):
        raise CompileError(f"{program} made a file of ELF machine {machine}, expected a shared object of {AMDGPU}")
    return code
