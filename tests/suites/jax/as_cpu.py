"""A plugin of pytest: JAX's tests take the device for its CPU platform, where they ask what they run on. That way tests
run that are marked for JAX's own platforms only."""


def pytest_collection_modifyitems() -> None:
    # Now the tests have loaded JAX: before pytest captures what is printed, its tests would remember another place.
    import jax

    jax.config.update("jax_test_dut", "cpu")
