"""Shared by all tests: the markers for what a test needs, and the folder of conformance vectors.

A test that needs a framework has its marker, and a file that needs one begins with `pytest.importorskip`: if the
framework is missing, the test is skipped. In CI (`CI=true`), every framework must be installed.
"""

import functools
import gc
import os
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest

FRAMEWORKS = ("torch", "tensorflow", "jax", "onnx")


def pytest_configure() -> None:
    # XLA's results are compared, not its speed: without optimization it compiles in half the time. It reads this when a
    # framework is imported, in the processes that tests start as well.
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    # On some processors, TensorFlow calls oneDNN in place of its own kernels, which compute other numbers and have
    # fewer types.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    missing = [framework for framework in FRAMEWORKS if find_spec(framework) is None]
    if missing and os.environ.get("CI", "").lower() in ("1", "true"):
        raise pytest.UsageError(f"CI runs with every framework, missing here: {', '.join(missing)}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collects the tests. Python's cycle collector then leaves alone what they have imported: the frameworks, millions
    of objects, which it would walk again and again, now and while the tests run. The rest it walks less often."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Returns what gives files to the workers. xdist counts, after each event, the tests of all the files that it has
    given to them; here, it forgets the files that are complete. Otherwise it would compute for a minute."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def mark_test_complete(self, node: object, item_index: int, duration: float = 0) -> None:
            super().mark_test_complete(node, item_index, duration)
            files = self.assigned_work[node]
            for file in [file for file, tests in files.items() if all(tests.values())]:
                del files[file]

    return Scheduling(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for framework in FRAMEWORKS:
        if item.get_closest_marker(framework) and find_spec(framework) is None:
            pytest.skip(f"{framework} is not installed: pip install 'trivium[{framework}]'")
    if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
        pytest.skip(f"no NVIDIA GPU here: {reason}")


@functools.cache
def why_no_gpu() -> str:
    """Returns why there is no NVIDIA GPU to test on; empty if there is one."""
    from trivium.backends.gpu.cuda import count
    from trivium.ir.errors import Error

    try:
        count()
    except Error as error:
        return str(error)
    return ""


@pytest.fixture(scope="session")
def conformance() -> Path:
    """The folder of conformance vectors, named by `TRIVIUM_CONFORMANCE`."""
    folder = os.environ.get("TRIVIUM_CONFORMANCE")
    if not folder:
        pytest.skip("TRIVIUM_CONFORMANCE is not set")
    return Path(folder)
