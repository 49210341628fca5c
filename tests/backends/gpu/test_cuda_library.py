"""Finding NVIDIA's driver: none, one that lacks functions, an old one."""

from __future__ import annotations

import pytest

from tests.backends.gpu import simulator
from trivium import backends
from trivium.backends.gpu import cuda_library
from trivium.backends.gpu.cuda import Cuda
from trivium.ir.errors import Error


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_library, "NAME", "libno-such-driver.so.1")
    cuda_library.library.cache_clear()
    with pytest.raises(Error, match="NVIDIA's driver is not installed: libno-such-driver"):
        Cuda(0)
    _, reasons = backends.discovered()
    assert reasons["cuda"].startswith("NVIDIA's driver is not installed")


def test_a_library_that_lacks_functions_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_library, "NAME", "libc.so.6")
    cuda_library.library.cache_clear()
    with pytest.raises(Error, match=r"driver is too old, expected one for CUDA 12\.0: .*cuGetErrorName"):
        Cuda(0)


@pytest.mark.skipif(simulator.compiler() is None, reason="no compiler of C++ builds the simulator")
def test_an_old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_library, "OLDEST", 14_010)
    with simulator.simulated(), pytest.raises(Error, match=r"is one for CUDA 13\.0, expected at least 14\.1"):
        Cuda(0)


def test_versions() -> None:
    text = cuda_library.API.version_text
    assert [text(number) for number in (12_000, 12_080, 13_010)] == ["12.0", "12.8", "13.1"]


def test_errors_name_the_innermost_operation() -> None:
    with (
        pytest.raises(cuda_library.CudaError, match=r"^CUDA failed, doing this: no$") as error,
        cuda_library.during("doing that"),
        cuda_library.during("doing this"),
    ):
        raise cuda_library.CudaError("no", 7)
    assert error.value.code == 7
