"""Processors as targets: this one's facts agree with the system's, the levels are those of the psABI, and others are
refused."""

from __future__ import annotations

import platform
from dataclasses import asdict, replace
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from trivium.backends.cpu.target import CACHE_LINE, LEVELS, emulated, host, level, machine_of
from trivium.compiler.artifact import lacking
from trivium.ir.errors import Error

on_x86 = pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="the levels are those of x86-64")
X86 = [name for name in LEVELS if name.startswith("x86")]
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


@pytest.mark.parametrize("name", LEVELS)
def test_levels(name: str) -> None:
    described = level(name)
    assert {fact: getattr(described, fact) for fact in asdict(LEVELS[name])} == asdict(LEVELS[name])
    assert described.threads == 1


@on_x86
@pytest.mark.parametrize("name", X86)
def test_the_features_of_a_level_are_those_that_llvm_gives_it(name: str) -> None:
    """Machine code that is checked for them runs: LLVM's name implies no others."""
    described = level(name)
    implied = llvm.Target.from_triple(described.triple).create_target_machine(cpu=name)
    stated = llvm.Target.from_triple(described.triple).create_target_machine(cpu="x86-64", features=described.features)
    vectors = FUSED.format(lanes=described.vector_bytes // 4)
    assert instructions(implied, vectors).splitlines()[2:] == instructions(stated, vectors).splitlines()[2:]


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
@pytest.mark.parametrize("name", X86)
def test_llvm_agrees_about_what_a_level_has(name: str) -> None:
    """A vector of the level's size is one register, and is multiplied and added in one instruction if the level says
    so."""
    vector_bytes, fma = LEVELS[name].vector_bytes, LEVELS[name].fma
    text = instructions(level(name).machine(), FUSED.format(lanes=vector_bytes // 4))
    assert ("vfmadd" in text) == fma
    register = {16: "xmm", 32: "ymm", 64: "zmm"}[vector_bytes]
    assert f"%{register}" in text
    wider = {16: "ymm", 32: "zmm"}.get(vector_bytes)
    assert wider is None or wider not in instructions(level(name).machine(), FUSED.format(lanes=vector_bytes // 2))


@on_x86
@pytest.mark.parametrize("name", X86)
def test_emulated_processors_use_instructions_of_this_one(name: str) -> None:
    here, planned = host(), emulated(name)
    assert machine_of(planned) == machine_of(here)
    assert (planned.fma, planned.half, planned.ldexp) == (here.fma, here.half, here.ldexp)
    assert planned.vector_bytes == LEVELS[name].vector_bytes


@on_x86
def test_code_for_a_level_does_not_run_on_one_that_lacks_it() -> None:
    low, high = (replace(machine_of(level(name)), features="") for name in ("x86-64-v2", "x86-64-v4"))
    needing = replace(high, features="+avx512f,-amx-tile")
    assert lacking(needing, low) == ["x86-64-v2 has no avx512f"]
    assert lacking(low, needing) == []


@pytest.mark.parametrize("name", ["pentium", "", "x86-64-v1", "native"])
def test_unknown_levels(name: str) -> None:
    with pytest.raises(
        Error, match=f"unknown target '{name}', expected one of x86-64-v2, x86-64-v3, x86-64-v4, aarch64"
    ):
        level(name)
