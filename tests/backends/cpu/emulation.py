"""Runs compiled programs on a processor of another kind, as an emulator of its instructions has it: QEMU for user
programs, with the native runtime and a small host without Python, both built by a cross compiler."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trivium.backends.artifact import to_bytes
from trivium.backends.table.abi import TYPES
from trivium.compiler.artifact import Artifact

ROOT = Path(__file__).parents[3]
SYSTEM = "aarch64-linux-gnu"
COMPILER, EMULATOR = f"{SYSTEM}-g++", "qemu-aarch64"
AT_A_TIME = 200
"""Programs of one process."""


def missing() -> list[str]:
    """Returns the tools that this machine lacks."""
    return [tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None]


@dataclass(frozen=True)
class Emulated:
    """The host and the runtime, which are files in `folder`."""

    folder: Path

    @classmethod
    def built(cls, folder: Path) -> Emulated:
        """Builds both."""
        native = ROOT / "backends/native"
        compile = [COMPILER, "-std=c++20", "-O1", "-Wno-invalid-offsetof", f"-I{native}"]
        host = ROOT / "tests/backends/native/run_programs.cc"
        sources = [str(path) for folder in (native, native / "pjrt") for path in sorted(folder.glob("*.cc"))]
        library = ["-fPIC", "-shared", *sources, "-Wl,-soname,libtrivium_runtime.so"]
        for output, arguments in (("run_programs", [str(host)]), ("libtrivium_runtime.so", library)):
            subprocess.run([*compile, *arguments, "-o", str(folder / output), "-lpthread", "-ldl"], check=True)
        return cls(folder)

    def run(self, programs: Sequence[tuple[Artifact, Sequence[np.ndarray]]], where: Path) -> Iterator[Results]:
        """Yields what becomes of each program: its results, or a message."""
        folders = [where / str(number) for number in range(len(programs))]
        for folder, (artifact, arguments) in zip(folders, programs, strict=True):
            _write(folder, artifact, arguments)
        for begin in range(0, len(folders), AT_A_TIME):
            self._execute(folders[begin : begin + AT_A_TIME])
        for folder, (artifact, _) in zip(folders, programs, strict=True):
            yield _read(folder, artifact)

    def _execute(self, folders: Sequence[Path]) -> None:
        """Runs programs in one process; if it dies, those that it left undone in others."""
        host = [EMULATOR, "-L", f"/usr/{SYSTEM}", str(self.folder / "run_programs")]
        left = list(folders)
        while left:
            done = subprocess.run([*host, str(self.folder / "libtrivium_runtime.so"), *map(str, left)], timeout=1200)
            if done.returncode == 0:
                return
            left = [folder for folder in left if not _finished(folder)]
            if left:
                (left.pop(0) / "error").write_text(f"the process ended with {done.returncode}")


Results = list[np.ndarray] | str
"""Of a program: its results, or why there are none."""


def _write(folder: Path, artifact: Artifact, arguments: Sequence[np.ndarray]) -> None:
    folder.mkdir()
    (folder / "executable").write_bytes(to_bytes(artifact))
    lines = [" ".join(map(str, (TYPES[array.dtype.name], *array.shape))) for array in arguments]
    (folder / "arguments").write_text("".join(f"{line}\n" for line in lines))
    for number, array in enumerate(arguments):
        (folder / f"argument{number}").write_bytes(np.ascontiguousarray(array).tobytes())


def _finished(folder: Path) -> bool:
    return any(folder.glob("result*")) or (folder / "error").exists()


def _read(folder: Path, artifact: Artifact) -> Results:
    if (folder / "error").exists():
        return (folder / "error").read_text()
    arrays = []
    for number, slot in enumerate(artifact.outputs):
        path = folder / f"result{number}"
        if not path.exists():
            return f"there is no result {number}"
        arrays.append(np.frombuffer(path.read_bytes(), slot.dtype).reshape(slot.shape))
    return arrays
