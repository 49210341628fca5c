"""AMX's tile registers are used only where Linux permits them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import trivium
from trivium.backends.cpu import target
from trivium.backends.cpu.target import AMX, host, machine_of

has_tiles = pytest.mark.skipif(
    all(one.in_vectors for one in host().matrix_instructions), reason="there are no tiles, or Linux refuses them"
)


@pytest.mark.parametrize("permitted", [True, False])
def test_without_permission_a_target_has_no_tiles(permitted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    features = target.llvm.get_host_cpu_features()
    features.update({"amx-tile": True, "amx-complex": True, **dict.fromkeys(AMX, True)})
    monkeypatch.setattr(target.llvm, "get_host_cpu_features", lambda: features)
    monkeypatch.setattr(target, "_may_use_tiles", lambda: permitted)
    found = host.__wrapped__()
    assert [one for one in found.matrix_instructions if not one.in_vectors] == [*AMX.values()] * permitted
    assert ("+amx" in machine_of(found).features) == permitted


PROGRAM = """func.func @main(%x: tensor<40x128xi8>, %w: tensor<128x70xi8>) -> tensor<40x70xi32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<40x128xi8>, tensor<128x70xi8>) -> tensor<40x70xi32>
  return %0 : tensor<40x70xi32>
}"""  # noqa: E501

REFUSED = """
import ctypes, sys

class Stack(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]

memory = ctypes.create_string_buffer(8192)
stack = Stack(ctypes.addressof(memory), 0, len(memory))
assert ctypes.CDLL(None).sigaltstack(ctypes.byref(stack), None) == 0

import numpy as np
import trivium
from trivium.backends.cpu.target import host

assert all(one.in_vectors for one in host().matrix_instructions)
text, theirs, ours = sys.argv[1:]
run = trivium.compile(trivium.parse(text))
lhs, rhs = np.full((40, 128), -128, np.int8), np.full((128, 70), 127, np.int8)
assert (np.asarray(run(lhs, rhs)) == -128 * 128 * 127).all()
run.save(ours)
try:
    trivium.load_executable(theirs)
except trivium.Error as error:
    print(error)
"""


@has_tiles
def test_linux_refuses(tmp_path) -> None:
    """It does so if a stack for signals has no room for the registers. Then programs use vectors, and those that were
    compiled for tiles are not loaded. What is compiled without permission needs none."""
    names = [str(tmp_path / name) for name in ("theirs", "ours")]
    trivium.compile(trivium.parse(PROGRAM)).save(names[0])
    command = [sys.executable, "-c", REFUSED, PROGRAM, *names]
    done = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    assert "has no amx-" in done.stdout
    lhs, rhs = np.ones((40, 128), np.int8), np.ones((128, 70), np.int8)
    assert (np.asarray(trivium.load_executable(names[1])(lhs, rhs)) == 128).all()
