"""The facts about GPUs."""

from __future__ import annotations

from dataclasses import replace

from trivium.backends.gpu import amdgcn, nvptx, spirv
from trivium.backends.gpu.target import machine_of


def test_what_differs_by_device() -> None:
    nvidia, amd, opencl = nvptx.target("sm_80"), amdgcn.target("gfx90a"), spirv.target()
    assert [one.vectors for one in (nvidia, amd, opencl)] == [True, True, False]
    assert [one.scans for one in (nvidia, amd, opencl)] == [True, True, False]
    assert [one.warp for one in (nvidia, amd)] == [32, 64]


def test_what_the_caller_allows_needs_no_other_device() -> None:
    target = nvptx.target("sm_90a")
    assert machine_of(replace(target, tf32=True, deterministic=False)) == machine_of(target)
    assert machine_of(target) != machine_of(nvptx.target("sm_80"))
