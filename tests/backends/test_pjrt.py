"""The backends implement the interface, and it declares nothing that they do not have."""

from __future__ import annotations

import numpy as np
import pytest

import trivium
from trivium.backends import pjrt
from trivium.backends.cpu.client import CpuClient
from trivium.backends.pjrt import STAGES, MemoryStats

CLIENT = CpuClient()
STATIC = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}"
DYNAMIC = STATIC.replace("4xf32", "?xf32")
X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("text", [STATIC, DYNAMIC], ids=("static", "dynamic"))
def test_executables(text: str) -> None:
    """Executables of static and of dynamic shapes can be used alike. Dynamic ones report more after a call."""
    executable = CLIENT.compile(trivium.parse(text))
    np.testing.assert_array_equal(executable.execute(X)[0], X)
    assert isinstance(executable, pjrt.LoadedExecutable)
    assert (executable.name, executable.device) == ("main", CLIENT.devices[0])
    assert str(executable.signature.function_type) == str(trivium.parse(text).main.function_type)
    assert executable.graph.main.sym_name == "main"
    assert executable.program.name == "main"
    assert all(executable.stage(stage) for stage in STAGES)
    assert set(executable.cost_analysis()) == {"flops", "transcendentals", "bytes accessed"}
    assert isinstance(executable.memory_analysis(), MemoryStats)
    assert executable.specialize(X).whole().is_whole
    (result,) = executable.execute_buffers([CLIENT.buffer_from_host(X)])
    assert isinstance(result, pjrt.Buffer)
    np.testing.assert_array_equal(result.to_numpy(), X)


def test_clients_and_what_they_own() -> None:
    buffer = CLIENT.buffer_from_host(X)
    (device,) = CLIENT.devices
    for found, kind in (
        (CLIENT, pjrt.Client), (device, pjrt.Device), (device.default_memory, pjrt.Memory), (buffer, pjrt.Buffer),
        (buffer.ready, pjrt.Event),
    ):  # fmt: skip
        assert isinstance(found, kind)
    assert not isinstance(object(), pjrt.Client)


@pytest.mark.jax
def test_memory_is_reported_under_the_names_of_pjrt() -> None:
    """With the names of JAX's `CompiledMemoryStats`, if JAX is installed."""
    names = set(dir(pytest.importorskip("jaxlib._jax").CompiledMemoryStats))
    own = set(MemoryStats.__dataclass_fields__)
    assert own - names == {"constant_size_in_bytes"}
