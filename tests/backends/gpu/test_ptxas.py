"""NVIDIA's assembler, if it is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivium.backends import cache
from trivium.backends.gpu import ptxas
from trivium.ir.errors import CompileError

PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry k0() { ret; }
"""

needs_ptxas = pytest.mark.skipif(ptxas.installed() is None, reason="ptxas is part of CUDA, which is not installed")


@needs_ptxas
def test_machine_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path))
    found = ptxas.installed()
    assert found is not None
    code = found.assembled(PTX, "sm_80")
    assert code.startswith(b"\x7fELF")
    monkeypatch.setattr(ptxas.subprocess, "run", None)
    assert found.assembled(PTX, "sm_80") == code
    assert cache.default() is not None


@needs_ptxas
def test_a_newer_generation_than_the_driver_is_not_used() -> None:
    found = ptxas.installed()
    assert found is not None
    assert ptxas.installed_for(found.version, "sm_80") is found
    assert ptxas.installed_for(found.version - 1000, "sm_80") is None


@needs_ptxas
def test_an_older_one_than_the_architecture_is_not_used() -> None:
    found = ptxas.installed()
    assert found is not None
    assert {"sm_80", "sm_90a"} <= found.architectures
    assert ptxas.installed_for(found.version, "sm_999") is None


def test_what_ptxas_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = ptxas.Ptxas("false", 13_000)
    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    with pytest.raises(CompileError, match="ptxas refuses the program for sm_80"):
        broken.assembled(b".version 8.0", "sm_80")
