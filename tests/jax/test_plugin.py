"""Trivium as a device of JAX: the checks of `device_checks.py`, and tests that need whole processes."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.jax

jax = pytest.importorskip("jax")
pytest.importorskip("flax")
pytest.importorskip("optax")

from tests.jax import processes
from tests.jax.device_checks import CHECKS
from tests.jax.processes import run


@pytest.fixture(scope="module")
def failures() -> dict[str, str]:
    return processes.failures(TRIVIUM_NUM_DEVICES="2")


@pytest.mark.parametrize("name", [check.__name__ for check in CHECKS])
def test_check(name: str, failures: dict[str, str]) -> None:
    assert not failures[name], failures[name]


def test_the_default_platform_does_not_change() -> None:
    done = run("-c", "import jax; print(jax.default_backend(), len(jax.devices('trivium')))", JAX_PLATFORMS="")
    assert done.stdout.split() == ["cpu", "1"], done.stderr
    assert "experimental" not in done.stderr


def test_devices_are_listed_without_the_compiler() -> None:
    modules = ("trivium.compiler", "trivium.ir", "llvmlite")
    script = f"import jax, sys; jax.devices(); print(*(name in sys.modules for name in {modules}))"
    assert run("-c", script).stdout.split() == ["False"] * 3


def test_a_wrong_number_of_devices_is_an_error() -> None:
    done = run("-c", "import jax; jax.devices()", TRIVIUM_NUM_DEVICES="many")
    assert done.returncode != 0
    assert "TRIVIUM_NUM_DEVICES" in done.stderr


def test_an_interpreter_that_exits_with_arrays_ends_well() -> None:
    script = "import jax, jax.numpy as jnp; x = jax.jit(lambda x: x + 1)(jnp.ones(3)); jax.keep = x; print(x.sum())"
    done = run("-c", script)
    assert (done.returncode, done.stdout.strip()) == (0, "6.0"), done.stderr


FORKED = """
import jax, jax.numpy as jnp, os, signal
function = jax.jit(lambda x: jnp.tanh(x @ x.T).sum())
x = jnp.ones((256, 256))
expected = float(function(x))
for _ in range(3):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if float(function(x)) == expected else 1)
    print(os.waitpid(child, 0)[1])
"""


def test_a_forked_child_runs_what_its_parent_compiled() -> None:
    done = run("-W", "ignore", "-c", FORKED, TRIVIUM_NUM_THREADS="4")
    assert done.stdout.split() == ["0"] * 3, done.stderr


SERIALIZED = """
import jax, jax.numpy as jnp, numpy as np, pickle, sys
from jax.experimental import serialize_executable
x = jnp.arange(32, dtype=jnp.float32).reshape(4, 8) / 32
weights = np.arange(48, dtype=np.float32).reshape(8, 6) / 48
function = lambda x: (jnp.tanh(x @ weights), jnp.linalg.cholesky(x @ x.T + jnp.eye(4)))
if sys.argv[1] == "write":
    compiled = jax.jit(function).lower(x).compile()
    results = [np.asarray(y) for y in compiled(x)]
    pickle.dump((serialize_executable.serialize(compiled), results), open(sys.argv[2], "wb"))
else:
    serialized, expected = pickle.load(open(sys.argv[2], "rb"))
    loaded = serialize_executable.deserialize_and_load(*serialized)
    for result, wanted in zip(loaded(x), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(result), wanted)
    print(loaded.cost_analysis()["flops"] > 300, "trivium.compiler.lower" in sys.modules)
"""


def test_serialized_executables_run_in_another_process(tmp_path: Path) -> None:
    """A function with constants, and one with LAPACK, whose routine is looked up again."""
    # The programs that make the arguments are in this cache when the second process reads them.
    cache = str(tmp_path / "cache")
    written = run("-c", SERIALIZED, "write", str(tmp_path / "executable"), TRIVIUM_CACHE=cache)
    assert written.returncode == 0, written.stderr
    read = run("-c", SERIALIZED, "read", str(tmp_path / "executable"), TRIVIUM_CACHE=cache)
    assert read.stdout.split() == ["True", "False"], read.stderr


DIVIDED = """
import jax, jax.numpy as jnp, numpy as np, pickle, sys
from functools import partial
from jax.experimental import serialize_executable
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
rows, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
x = jax.device_put(np.arange(32, dtype=np.float32).reshape(4, 8) / 32, rows)
y = jax.device_put(np.arange(48, dtype=np.float32).reshape(8, 6) / 48, whole)

@partial(jax.shard_map, mesh=mesh, in_specs=(P("x"), P()), out_specs=(P(), P("x"), P("x")))
def shared(x, y):
    return jax.lax.psum(x.sum(0), "x"), x @ y, jax.lax.axis_index("x")[None]

functions = [shared, lambda x, y: (jnp.tanh(x), y.T, (x @ y).sum())]
functions.append(lambda x, y: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)))
if sys.argv[1] == "write":
    made = []
    for function in functions:
        compiled = jax.jit(function).lower(x, y).compile()
        results = jax.tree.map(np.asarray, compiled(x, y))
        made.append((serialize_executable.serialize(compiled), results))
    pickle.dump(made, open(sys.argv[2], "wb"))
else:
    for serialized, expected in pickle.load(open(sys.argv[2], "rb")):
        loaded = serialize_executable.deserialize_and_load(*serialized)
        found = loaded(x, y)
        jax.tree.map(lambda result, wanted: np.testing.assert_array_equal(np.asarray(result), wanted), found, expected)
        again = jax.tree.map(np.asarray, serialize_executable.deserialize_and_load(
            *serialize_executable.serialize(loaded))(x, y))
        jax.tree.map(np.testing.assert_array_equal, again, expected)
        print(*(len(result.addressable_shards) for result in jax.tree.leaves(found)))
    print("trivium.compiler.lower" in sys.modules)
"""


def test_serialized_executables_of_several_devices(tmp_path: Path) -> None:
    """Programs that each device runs, that run once for all, and that look up functions of the host."""
    written = run("-c", DIVIDED, "write", str(tmp_path / "executable"), TRIVIUM_NUM_DEVICES="4")
    assert written.returncode == 0, written.stderr
    read = run("-c", DIVIDED, "read", str(tmp_path / "executable"), TRIVIUM_NUM_DEVICES="4")
    assert read.stdout.split("\n")[:4] == ["4 4 4", "4 4 4", "4", "False"], read.stderr
    other = run("-c", DIVIDED, "read", str(tmp_path / "executable"), TRIVIUM_NUM_DEVICES="2")
    assert other.returncode != 0


CACHED = """
import jax, jax.numpy as jnp, sys
from collections import Counter
events = Counter()
jax.monitoring.register_event_listener(lambda event, **more: events.update([event.rpartition("/")[2]]))
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
x = jnp.arange(12.0).reshape(3, 4)
print(float(jax.jit(lambda x: jnp.sin(x) @ x.T)(x).sum()), float(jnp.linalg.cholesky(jnp.eye(3) * 4).sum()))
print(events["cache_misses"], events["cache_hits"], "trivium.compiler.lower" in sys.modules)
"""


def test_the_persistent_compilation_cache(tmp_path: Path) -> None:
    """A second process compiles nothing."""
    first, second = (run("-c", CACHED, JAX_COMPILATION_CACHE_DIR=str(tmp_path), TRIVIUM_CACHE="0") for _ in range(2))
    assert first.returncode == 0, first.stderr
    values, (misses, hits, _) = first.stdout.splitlines()[0], first.stdout.splitlines()[1].split()
    assert int(misses) > 0
    assert int(hits) == 0
    assert second.stdout.splitlines() == [values, f"0 {misses} False"], second.stderr


CALLBACK = """
import sys, jax, jax.numpy as jnp
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
factor, *others = map(int, sys.argv[1:])
called = lambda scale, x: jax.pure_callback(lambda x: x * scale, jax.ShapeDtypeStruct((3,), jnp.float32), x)
for other in others:
    jax.jit(lambda x: 2 * called(other, x))(jnp.ones(3))
print(jax.jit(lambda x: x + called(factor, x))(jnp.arange(3.0)))
"""


def test_a_program_from_the_persistent_cache_calls_the_functions_of_its_process(tmp_path: Path) -> None:
    for factors, result in ((("1",), "[0. 2. 4.]"), (("7", "100"), "[ 0.  8. 16.]"), (("2",), "[0. 3. 6.]")):
        done = run("-c", CALLBACK, *factors, JAX_COMPILATION_CACHE_DIR=str(tmp_path))
        assert done.stdout.splitlines() == [result], done.stderr


def test_without_the_persistent_cache_nothing_is_kept(tmp_path: Path) -> None:
    done = run("-c", CACHED, TRIVIUM_CACHE="0")
    assert done.stdout.splitlines()[1] == "0 0 True", done.stderr


METRICS = """
import collections, jax
events = collections.Counter()
jax.monitoring.register_event_listener(lambda event, **more: events.update([event.rpartition("/")[2]]))
for number in (1.0, 2.0):
    jax.jit(lambda x: x + number)(3.0)
print(events["task_disabled_cache"], events["tasks_using_cache"])
"""


@pytest.mark.parametrize(("enabled", "events"), [("0", "1 0"), ("1", "0 1")])
def test_whether_a_process_uses_the_persistent_cache_is_reported_once(enabled: str, events: str) -> None:
    done = run("-c", METRICS, JAX_ENABLE_COMPILATION_CACHE=enabled)
    assert done.stdout.splitlines() == [events], done.stderr
