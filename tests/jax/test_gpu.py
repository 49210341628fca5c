"""GPUs as devices of JAX: on OpenCL's runtime for processors, and on simulated GPUs of NVIDIA and AMD."""

import subprocess

import pytest

pytestmark = pytest.mark.jax

jax = pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("optax")

from tests.backends.gpu.simulator import needs_simulator
from tests.jax import processes
from tests.jax.device_checks import CHECKS
from trivium.backends.gpu import opencl

SEVERAL = "needs several devices, which OpenCL's runtime for processors is not"
ADDRESS = "needs the address of an array, which OpenCL does not have"
FAST = "a GPU's convolutions are the same under fast math"
DLPACK = "the check is for memory of the host"

OTHERS = {
    "fast_math": FAST,
    "several_devices": SEVERAL,
    "callbacks_under_a_mesh": SEVERAL,
    "collectives": SEVERAL,
    "terms_of_sums": SEVERAL,
    "error_on_one_of_several_devices": SEVERAL,
    "ordered_callbacks_of_devices": SEVERAL,
    "callbacks_on_parts": SEVERAL,
    "inspected_shardings": SEVERAL,
    "layouts_on_several_devices": SEVERAL,
    "shared_alike": SEVERAL,
    "options_of_several_devices": SEVERAL,
    "layouts_of_parts": SEVERAL,
    "serialized_layouts_of_parts": SEVERAL,
    "arrays_in_any_layout": SEVERAL,
    "collectives_in_texts": SEVERAL,
    "gathered_arguments": SEVERAL,
    "host_memory": ADDRESS,
    "donation_in_place": ADDRESS,
    "donated_memory_in_texts": ADDRESS,
    "memory_is_used_again": ADDRESS,
    "exported_arrays": DLPACK,
    "imported_arrays": DLPACK,
    "foreign_functions_of_this_platform": "handlers for a GPU expect its memory, and Trivium calls none",
}
"""The checks that OpenCL's runtime cannot pass."""

SIMULATED_CHECKS = [name for name, reason in OTHERS.items() if reason == SEVERAL] + ["kinds_of_memory"]
"""Those that two simulated GPUs of NVIDIA's pass."""

needs_opencl = pytest.mark.skipif(
    not opencl.is_installed() or not opencl.devices(),
    reason="no driver of OpenCL here takes SPIR-V: pip install 'trivium[gpu-test]'",
)


NAMES = [check.__name__ for check in CHECKS if check.__name__ not in OTHERS]

ENVIRONMENT = {"JAX_PLATFORMS": "trivium_gpu", "TRIVIUM_GPU": "opencl"}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs Python code in a process in which a GPU is the platform."""
    return processes.run(*arguments, **ENVIRONMENT | environment)


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    return processes.failures(*NAMES, **ENVIRONMENT)


@needs_opencl
@pytest.mark.parametrize("name", NAMES)
def test_check(name: str, failures: dict[str, str]) -> None:
    assert not failures[name], failures[name]


@needs_opencl
def test_a_device_names_its_platform_and_its_model() -> None:
    done = run("-c", "import jax; print(*((device, device.platform, device.device_kind) for device in jax.devices()))")
    first = opencl.devices()[0]
    assert f"(TriviumDevice(id=0, opencl:0), 'trivium_gpu', '{first.name.strip()}, " in done.stdout


SIMULATED = """
from tests.backends.gpu import {simulator} as simulator
with simulator.simulated():
    import jax, jax.numpy as jnp, numpy as np
    device, *others = jax.devices()
    print(len(others), device.platform, device, device.device_kind)
    step = jax.jit(lambda w, x: (w - 0.1 * jnp.tanh(x @ w).mean(), (x @ w).sum()), donate_argnums=0)
    w, x = jnp.ones((8, 8)), jnp.asarray(np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32))
    w_cpu, x_cpu = np.asarray(w), np.asarray(x)
    place = w.unsafe_buffer_pointer()
    for _ in range(40):
        w, total = step(w, x)
        assert w.unsafe_buffer_pointer() == place
        w_cpu, total_cpu = w_cpu - np.float32(0.1) * np.tanh(x_cpu @ w_cpu).mean(), (x_cpu @ w_cpu).sum()
    np.testing.assert_allclose(w.block_until_ready(), w_cpu, rtol=1e-4)
    np.testing.assert_allclose(total, total_cpu, rtol=1e-4)
    print(w.unsafe_buffer_pointer() != 0, w.devices() == {{device}})
    events = simulator.fake().fake_live()
    for _ in range(200):
        w, total = step(w, x)
    w.block_until_ready()
    print(simulator.fake().fake_live() - events < 100)
    for other in others:
        there, _ = step(*jax.device_put((w, x), other))
        assert there.devices() == {{other}}
        np.testing.assert_array_equal(jax.device_put(there, device), step(w, x)[0])
"""


SHARED = """
from tests.backends.gpu import {simulator} as simulator
with simulator.simulated():
    import gc, jax, jax.numpy as jnp, numpy as np, trivium
    from trivium.backends import platforms
    driver = platforms.client_of("{platform}", 0).driver
    uploads, kept = [], driver.upload
    driver.upload = lambda *operands: (uploads.append(1), kept(*operands))
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = jnp.asarray(given) + 1
    negate = "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {{ %0 = stablehlo.negate %x : tensor<2x3xf32>" + (
        " return %0 : tensor<2x3xf32> }}")
    run = trivium.compile(trivium.parse(negate), device="{platform}:0")
    uploads.clear()
    np.testing.assert_array_equal(run(x)[0], -(given + 1))
    print(len(uploads), x.__dlpack_device__() == driver.dlpack_place)
    memory, dtype, shape = driver.borrowed(x)
    print(memory.address == x.unsafe_buffer_pointer(), dtype, shape)
    copied, _, _ = driver.borrowed(jnp.array(x, copy=True))
    print(copied.address != memory.address, jnp.array(x).__dlpack__(copy=True) is not None)
    jax.jit(lambda x: x * 2, donate_argnums=0)(x).block_until_ready()
    print(x.is_deleted())
    del x
    gc.collect()
    other = jnp.zeros((2, 3)) + 5
    result = np.empty((2, 3), np.float32)
    driver.download(result, memory)
    np.testing.assert_array_equal(result, given + 1)
    print(*np.from_dlpack(jax.device_put(other, jax.devices("cpu")[0]))[0])
    try:
        other.__dlpack__(dl_device=(1, 0))
    except BufferError as error:
        print("was asked for on" in str(error))
    del memory, copied
"""


@needs_simulator
@pytest.mark.parametrize(("platform", "simulator"), [("cuda", "simulator"), ("hip", "simulated_hip")])
def test_arrays_are_shared_in_the_gpus_memory(platform: str, simulator: str) -> None:
    """They are not copied, and live as long as somebody uses them."""
    names = "trivium_gpu,cpu"
    script = SHARED.format(simulator=simulator, platform=platform)
    done = run("-c", script, TRIVIUM_GPU=platform, TRIVIUM_CACHE="0", JAX_PLATFORMS=names)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0 True", "True float32 (2, 3)", "True True", "True", "5.0 5.0 5.0", "True"]


@needs_simulator
@pytest.mark.parametrize(("platform", "simulator", "others"), [("cuda", "simulator", 1), ("hip", "simulated_hip", 0)])
def test_a_simulated_gpu(platform: str, simulator: str, others: int) -> None:
    """The second one of AMD's is of an architecture for which there is no code: it is left out."""
    done = run("-c", SIMULATED.format(simulator=simulator), TRIVIUM_GPU=platform, TRIVIUM_CACHE="0")
    assert done.returncode == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    assert first.startswith(f"{others} trivium_gpu TriviumDevice(id=0, {platform}:0) Fake, ")
    assert rest == ["True True", "True"]


TWO_DEVICES = """
from tests.backends.gpu import simulator
with simulator.simulated():
    from tests.jax import device_checks
    assert len(device_checks.jax.devices()) == 2
    device_checks.main()
"""


@pytest.fixture(scope="module")
def failures_of_two() -> dict[str, str]:
    return processes.told(run("-c", TWO_DEVICES, *SIMULATED_CHECKS, TRIVIUM_GPU="cuda", TRIVIUM_CACHE="0"))


@needs_simulator
@pytest.mark.parametrize("name", SIMULATED_CHECKS)
def test_a_check_of_two_simulated_gpus(name: str, failures_of_two: dict[str, str]) -> None:
    assert not failures_of_two[name], failures_of_two[name]


def test_a_platform_that_is_none() -> None:
    done = run("-c", "import jax; jax.devices()", TRIVIUM_GPU="abacus")
    assert done.returncode != 0
    assert "TRIVIUM_GPU has 'abacus', expected one of cuda, hip, opencl" in done.stderr


def test_without_a_driver_the_reason_is_reported() -> None:
    done = run("-c", "import jax; jax.devices()", TRIVIUM_GPU="cuda")
    if done.returncode == 0:
        pytest.skip("this machine has an NVIDIA GPU")
    assert "NVIDIA's driver" in done.stderr


def test_other_platforms_do_not_depend_on_it() -> None:
    """A platform that nobody asked for by JAX's list of platforms is left out if it does not start."""
    script = "import jax; print(jax.default_backend(), len(jax.devices('trivium')))"
    done = run("-c", script, JAX_PLATFORMS="", TRIVIUM_GPU="abacus")
    assert done.stdout.split() == ["cpu", "1"], done.stderr
