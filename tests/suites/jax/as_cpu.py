"""A plugin of pytest: JAX's tests take the device for its CPU platform, where they ask what they run on. That way tests
run that are marked for JAX's own platforms only, or that exist only there."""

import pytest


def pytest_make_collect_report(collector: pytest.Collector) -> None:
    # Just before a file is loaded, and not before pytest captures what is printed: JAX's tests remember that place.
    if isinstance(collector, pytest.Module):
        import jax
        import jax._src.test_util  # declares the option

        jax.config.update("jax_test_dut", "cpu")
