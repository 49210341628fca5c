"""A plugin of pytest: JAX's tests take the device for its CPU platform, where they ask what they run on. That way tests
run that are marked for JAX's own platforms only."""

import jax
from jax._src import test_util  # noqa: F401 (declares the option)

jax.config.update("jax_test_dut", "cpu")
