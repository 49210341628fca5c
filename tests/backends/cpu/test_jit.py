"""Machine code and its cache."""

from __future__ import annotations

import os
import sys
import tempfile
from ctypes import CFUNCTYPE, c_int
from dataclasses import replace
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from tests.backends.harness import elementwise, load
from tests.garbage import cycles_left_by
from trivium.backends import cache, native
from trivium.backends.cpu import jit
from trivium.backends.cpu.code import Code, _memory_path
from trivium.backends.cpu.target import host
from trivium.ir.errors import CompileError

THREE = 'target triple = "{}"\ndefine i32 @three() {{ ret i32 3 }}'.format


def test_the_cache_holds_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path))
    kernel = elementwise("cosine", ["f32"], "f32", 12)
    a = np.arange(12, dtype=np.float32)
    first = load(kernel).execute(a)[0]
    (entry,) = tmp_path.iterdir()
    written = entry.stat().st_ino
    np.testing.assert_array_equal(load(kernel).execute(a)[0], first)
    (entry,) = tmp_path.iterdir()
    assert entry.stat().st_ino == written


@pytest.mark.parametrize("change", ["magic", "kind", "half", "short", "random", "empty", "shared object"])
def test_an_entry_that_is_not_an_object_file_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path))
    text = THREE(host().triple)
    shared = jit.compile_module(text, host())
    whole = host().machine().emit_object(jit.parsed(text))
    junk = {
        "magic": b"\x7fALF" + whole[4:],
        "kind": whole[:16] + b"\x07" + whole[17:],
        "half": whole[: len(whole) // 2],
        "short": whole[:63],
        "random": np.random.default_rng(0).bytes(500),
        "empty": b"",
        "shared object": shared,
    }[change]
    kept = cache.default()
    assert kept is not None
    kept.put(jit._key(text, host()), junk)
    assert jit.compile_module(text, host()) == shared
    assert kept.get(jit._key(text, host())) == whole


def test_keys_distinguish_targets() -> None:
    text = THREE(host().triple)
    others = [replace(host(), cpu="another"), replace(host(), features="+none"), replace(host(), triple="none")]
    assert len({jit._key(text, target) for target in (host(), *others)}) == 4


def test_what_llvm_refuses_is_an_error() -> None:
    with pytest.raises(CompileError, match="LLVM refuses the emitted module"):
        jit.compile_module("define i32 @f() { ret i64 3 }", host())


def linked(parts: list[str]) -> bytes:
    """The shared object of parts, of which the first half comes before the others are there."""
    with jit.Compilation(host()) as compilation:
        compilation.add(parts[: len(parts) // 2])
        return compilation.finish(parts[len(parts) // 2 :])


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_parts_are_compiled_at_the_same_time(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On however many threads, they become the same shared object."""
    monkeypatch.setattr(native, "num_threads", lambda: threads)
    kernels = 'target triple = "{}"\ndefine i32 @f{}(i32 %x) {{\n%y = mul i32 %x, {}\nret i32 %y\n}}'.format
    parts = [kernels(host().triple, n, n + 3) for n in range(20)]
    shared = linked(parts)
    code = Code(shared)
    assert [CFUNCTYPE(c_int, c_int)(code.address(f"f{n}"))(7) for n in range(20)] == [7 * (n + 3) for n in range(20)]
    monkeypatch.setattr(native, "num_threads", lambda: 1)
    assert linked(parts) == shared


def test_a_part_that_llvm_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "num_threads", lambda: 2)
    with pytest.raises(CompileError, match="LLVM refuses the emitted module"):
        linked([THREE(host().triple), "define i32 @f() { ret i64 3 }"])


def three() -> Code:
    return Code(jit.compile_module(THREE(host().triple), host()))


def answer(code: Code) -> int:
    return CFUNCTYPE(c_int)(code.address("three"))()


def mapped(address: int) -> bool:
    """Whether the process has memory at an address."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    ranges = [[int(bound, 16) for bound in line.split()[0].split("-")] for line in lines]
    return any(begin <= address < end for begin, end in ranges)


def test_code_runs() -> None:
    assert answer(three()) == 3


def test_asking_for_an_address_leaves_no_cycle() -> None:
    code = three()
    assert cycles_left_by(lambda: code.address("three")) == []


def test_code_is_unloaded_when_it_is_dropped() -> None:
    code = three()
    address = code.address("three")
    assert mapped(address)
    del code
    assert not mapped(address)


def test_no_function_of_python_runs_when_code_is_dropped() -> None:
    """An interrupt that arrived in one would be lost."""
    code = three()
    address = code.address("three")
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    del code
    sys.setprofile(None)
    assert not mapped(address)
    assert called == []


def test_modules_are_not_dropped_before_they_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt that arrived in `__del__` would be lost."""
    modules = []

    def record(text: str) -> llvm.ModuleRef:
        modules.append(llvm.parse_assembly(text))
        return modules[0]

    monkeypatch.setenv("TRIVIUM_CACHE", "0")
    monkeypatch.setattr(jit, "parsed", record)
    assert answer(three()) == 3
    assert [module.closed for module in modules] == [True]


def test_programs_do_not_get_each_others_code() -> None:
    """Descriptors of files in memory are reused, and the dynamic linker would identify files by them."""
    texts = [f'target triple = "{host().triple}"\ndefine i32 @three() {{ ret i32 {n} }}' for n in range(20)]
    codes = [Code(jit.compile_module(text, host())) for text in texts]
    assert [answer(code) for code in codes] == list(range(20))
    assert len({_memory_path(5, number) for number in range(1, 1000)}) == 999


def test_without_files_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(name: str, flags: int) -> int:
        raise PermissionError("not here")

    monkeypatch.setattr(os, "memfd_create", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert answer(three()) == 3
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(CompileError, match="the machine code cannot be loaded"):
        three()


def test_descriptors_are_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    codes = [three() for _ in range(5)]
    assert len(os.listdir("/proc/self/fd")) == before
    assert len(codes) == 5
