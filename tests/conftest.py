"""Shared by all tests: the markers for what a test needs, and the folder of conformance vectors.

A test that needs a framework has its marker, and a file that needs one begins with `pytest.importorskip`: if the
framework is missing, the test is skipped. In CI (`CI=true`), every framework must be installed.
"""

import ctypes
import os
from importlib.util import find_spec
from pathlib import Path

import pytest

FRAMEWORKS = ("torch", "tensorflow", "jax", "onnx")


def pytest_configure() -> None:
    missing = [framework for framework in FRAMEWORKS if find_spec(framework) is None]
    if missing and os.environ.get("CI", "").lower() in ("1", "true"):
        raise pytest.UsageError(f"CI runs with every framework, missing here: {', '.join(missing)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for framework in FRAMEWORKS:
        if item.get_closest_marker(framework) and find_spec(framework) is None:
            pytest.skip(f"{framework} is not installed: pip install 'trivium[{framework}]'")
    if item.get_closest_marker("gpu") and not has_gpu_driver():
        pytest.skip("no GPU driver on this machine")


def has_gpu_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder of conformance vectors, named by `TRIVIUM_CONFORMANCE`."""
    folder = os.environ.get("TRIVIUM_CONFORMANCE")
    if not folder:
        pytest.skip("TRIVIUM_CONFORMANCE is not set")
    return Path(folder)
