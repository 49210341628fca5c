"""NVIDIA's assembler, if the CUDA toolkit is installed: its output is cached on disk, so that the driver does not have
to compile PTX in every process."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from trivium.backends import cache
from trivium.ir.errors import CompileError


@dataclass(frozen=True)
class Ptxas:
    """The program, its version, like the driver's: 12080 is that of CUDA 12.8, and the architectures that it knows."""

    path: str
    version: int
    architectures: frozenset[str] = field(default=frozenset(), repr=False)

    def assembled(self, code: bytes, architecture: str) -> bytes:
        """Returns the machine code of a PTX program, from the cache if it is there."""
        kept, key = cache.default(), b"\0".join((b"ptxas", str(self).encode(), architecture.encode(), code))
        found = kept.get(key) if kept else None
        if found is None:
            found = self._run(code, architecture)
            if kept:
                kept.put(key, found)
        return found

    def _run(self, code: bytes, architecture: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="trivium-") as folder:
            source, result = Path(folder, "program.ptx"), Path(folder, "program.cubin")
            source.write_bytes(code)
            command = [self.path, f"-arch={architecture}", str(source), "-o", str(result)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise CompileError(f"ptxas refuses the program for {architecture}: {done.stderr.strip()[:1000]}")
            return result.read_bytes()


def installed_for(driver: int, architecture: str) -> Ptxas | None:
    """Returns the assembler, unless it is of a newer generation than the driver, which does not load what it makes, or
    older than the architecture."""
    found = installed()
    if found is None or found.version // 1000 > driver // 1000 or architecture not in found.architectures:
        return None
    return found


@functools.cache
def installed() -> Ptxas | None:
    """Returns the assembler that is on the path or in `CUDA_HOME`; None without one."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    path = shutil.which("ptxas") or shutil.which("ptxas", path=str(Path(home, "bin")))
    if path is None:
        return None
    output = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"release (\d+)\.(\d+)", output)
    if found is None:
        return None
    known = subprocess.run([path, "--help"], capture_output=True, text=True, check=False).stdout
    return Ptxas(path, 1000 * int(found[1]) + 10 * int(found[2]), frozenset(re.findall(r"'(sm_\w+)'", known)))
