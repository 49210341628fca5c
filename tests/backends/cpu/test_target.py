"""Processors as targets: this one's facts agree with the system's, the levels are those of the psABI, and others are
refused."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from trivium.backends.cpu import target
from trivium.backends.cpu.target import CACHE_LINE, LEVELS, emulated, host, level, machine_of
from trivium.compiler.artifact import lacking
from trivium.ir.errors import Error

on_x86 = pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="the levels are those of x86-64")
CPUINFO = Path("/proc/cpuinfo")


@on_x86
@pytest.mark.skipif(not CPUINFO.exists(), reason="there is no /proc/cpuinfo")
def test_this_processor_is_the_one_that_the_system_has() -> None:
    flags = set(CPUINFO.read_text().split("flags")[1].partition(":")[2].partition("\n")[0].split())
    here = host()
    assert here.vector_bytes == (64 if "avx512f" in flags else 32 if "avx2" in flags else 16)
    assert here.vector_registers == (32 if here.vector_bytes == 64 else 16)
    assert (here.fma, here.half, here.ldexp) == ("fma" in flags, "f16c" in flags, "avx512dq" in flags)
    assert here.triple.split("-")[0] == platform.machine()


def test_this_processor() -> None:
    here = host()
    assert host() is here
    assert here.threads == 1
    assert here.with_threads(3).threads == 3
    assert here.alignment == CACHE_LINE >= here.vector_bytes
    assert lacking(machine_of(here), machine_of(here)) == []


@on_x86
@pytest.mark.parametrize("name", LEVELS)
def test_levels(name: str) -> None:
    described, (vector_bytes, registers, fma, half, ldexp) = level(name), LEVELS[name]
    assert (described.vector_bytes, described.vector_registers) == (vector_bytes, registers)
    assert (described.fma, described.half, described.ldexp) == (fma, half, ldexp)
    assert (described.cpu, described.features) == (name, "")


def instructions(cpu: llvm.TargetMachine, text: str) -> str:
    return cpu.emit_assembly(llvm.parse_assembly(text))


FUSED = """
declare <{lanes} x float> @llvm.fma.v{lanes}f32(<{lanes} x float>, <{lanes} x float>, <{lanes} x float>)
define void @f(ptr %p) {{
  %x = load <{lanes} x float>, ptr %p
  %y = call <{lanes} x float> @llvm.fma.v{lanes}f32(<{lanes} x float> %x, <{lanes} x float> %x, <{lanes} x float> %x)
  store <{lanes} x float> %y, ptr %p
  ret void
}}
"""


@on_x86
@pytest.mark.parametrize("name", LEVELS)
def test_llvm_agrees_about_what_a_level_has(name: str) -> None:
    """A vector of the level's size is one register, and is multiplied and added in one instruction if the level says
    so."""
    vector_bytes, _, fma, *_ = LEVELS[name]
    text = instructions(level(name).machine(), FUSED.format(lanes=vector_bytes // 4))
    assert ("vfmadd" in text) == fma
    register = {16: "xmm", 32: "ymm", 64: "zmm"}[vector_bytes]
    assert f"%{register}" in text
    wider = {16: "ymm", 32: "zmm"}.get(vector_bytes)
    assert wider is None or wider not in instructions(level(name).machine(), FUSED.format(lanes=vector_bytes // 2))


@on_x86
@pytest.mark.parametrize("name", LEVELS)
def test_emulated_processors_use_instructions_of_this_one(name: str) -> None:
    here, planned = host(), emulated(name)
    assert machine_of(planned) == machine_of(here)
    assert (planned.fma, planned.half, planned.ldexp) == (here.fma, here.half, here.ldexp)
    assert planned.vector_bytes == LEVELS[name][0]


@on_x86
def test_code_for_a_level_does_not_run_on_one_that_lacks_it() -> None:
    low, high = (replace(machine_of(level(name)), features="") for name in ("x86-64-v2", "x86-64-v4"))
    needing = replace(high, features="+avx512f,-amx-tile")
    assert lacking(needing, low) == ["x86-64-v2 has no avx512f"]
    assert lacking(low, needing) == []


@pytest.mark.parametrize("name", ["pentium", "", "x86-64-v1", "native"])
def test_unknown_levels(name: str) -> None:
    with pytest.raises(Error, match=f"unknown target '{name}', expected one of x86-64-v2, x86-64-v3, x86-64-v4"):
        level(name)


def test_other_processors_do_not_have_the_levels_of_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(host(), triple="aarch64-unknown-linux-gnu")
    monkeypatch.setattr(target, "host", lambda: other)
    with pytest.raises(Error, match="x86-64-v3 is an x86-64 processor, expected one of aarch64-unknown-linux-gnu"):
        level("x86-64-v3")
