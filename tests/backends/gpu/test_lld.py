"""The linker for code of AMD GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trivium.backends.gpu import lld
from trivium.ir.errors import CompileError


@pytest.fixture(autouse=True)
def searched() -> Iterator[None]:
    """Lets each test, and what comes after them, look for the linker again."""
    lld.installed.cache_clear()
    yield
    lld.installed.cache_clear()


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_without_a_linker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    program(tmp_path / "ld.lld", "echo Debian LLD 14.0.6")
    text = r"no ld\.lld, lld, or ld\.lld-15 to ld\.lld-25 of LLVM 15 or newer is on the path or in /nowhere/llvm/bin"
    with pytest.raises(CompileError, match=text):
        lld.linked(b"")


def test_that_of_rocm_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    path = program(tmp_path / "llvm" / "bin" / "ld.lld", "echo AMD LLD 19.0.0")
    assert lld.installed() == str(path)


def test_one_of_a_version_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path / "ld.lld", "echo Debian LLD 14.0.6")
    path = program(tmp_path / "ld.lld-19", "echo Debian LLD 19.1.7")
    assert lld.installed() == str(path)


def test_linker_errors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path / "ld.lld", "echo LLD 19; echo 'ld.lld: error: no' >&2; exit 1")
    with pytest.raises(CompileError, match=r"ld\.lld does not link the program: ld\.lld: error: no"):
        lld.linked(b"\x7fELF")


def test_a_file_of_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A linker that only copies."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    program(tmp_path / "ld.lld", 'echo LLD 19; [ "$1" = --version ] || cp "$3" "$5"')
    with pytest.raises(CompileError, match="made a file of ELF machine None, expected a shared object of 224"):
        lld.linked(b"no file of ELF")
