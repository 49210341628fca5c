"""Machine code and its cache."""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_int
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.backends.harness import elementwise, load
from trivium.backends import cache
from trivium.backends.cpu import jit
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


@pytest.mark.parametrize("change", ["magic", "kind", "sections", "short", "random", "empty"])
def test_an_entry_that_is_no_object_file_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path))
    text = THREE(host().triple)
    whole = jit.compile_module(text, host())
    junk = {
        "magic": b"\x7fALF" + whole[4:],
        "kind": whole[:16] + b"\x07" + whole[17:],
        "sections": whole[: len(whole) // 2],
        "short": whole[:63],
        "random": np.random.default_rng(0).bytes(500),
        "empty": b"",
    }[change]
    kept = cache.default()
    assert kept is not None
    kept.put(jit._key(text, host()), junk)
    assert jit.compile_module(text, host()) == whole
    assert kept.get(jit._key(text, host())) == whole


def test_keys_tell_targets_apart() -> None:
    text = THREE(host().triple)
    others = [replace(host(), cpu="another"), replace(host(), features="+none"), replace(host(), triple="none")]
    assert len({jit._key(text, target) for target in (host(), *others)}) == 4


def test_what_llvm_refuses_is_an_error() -> None:
    with pytest.raises(CompileError, match="LLVM refuses the emitted module"):
        jit.compile_module("define i32 @f() { ret i64 3 }", host())


def test_code_runs() -> None:
    code = jit.Code(jit.compile_module(THREE(host().triple), host()), host())
    assert CFUNCTYPE(c_int)(code.address("three"))() == 3
