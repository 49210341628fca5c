"""JAX programs that are in flight on Trivium's device while the caller goes on: each test is a process."""

import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jax")

from tests.jax.test_plugin import run

START = """
import os, sys, threading, time
import jax, jax.numpy as jnp, numpy as np
gate = threading.Event()
def wait(x):
    gate.wait(60)
    return x
def waiting(x):
    return jax.pure_callback(lambda x: wait(x), jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2
def work(x):
    # More than what is run at once, in the caller's thread.
    return jax.lax.fori_loop(0, 20, lambda _, y: y @ x, x)
x = np.eye(500, dtype=np.float32)
f = jax.jit(lambda x: waiting(work(x)))
g = jax.jit(lambda x: x + 1)
f.lower(x).compile(), g(x)
"""
"""`f(x)` is in flight until the gate opens."""


def passes(script: str) -> None:
    done = run("-W", "ignore", "-c", START + script)
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["end"]), done.stderr


def test_a_chain_in_flight() -> None:
    """Nobody waits before the results are read: not for deletion, donation, a copy, a pointer or an event."""
    passes("""
d = jax.device_put(x)
y = f(d)
d.delete()
z = jax.jit(lambda y: y + 1, donate_argnums=0)(y)
assert y.is_deleted() and not z.is_ready()
w = jax.device_put(z, jax.devices()[0], may_alias=False)
assert z.unsafe_buffer_pointer()
z.copy_to_host_async()
gate.set()
expected = 2 * x + 1
np.testing.assert_array_equal(np.asarray(w), expected)
np.testing.assert_array_equal(np.asarray(z), expected)
print("end")
""")


def test_an_exception_reaches_what_depends_on_it() -> None:
    passes("""
def wait(x):
    gate.wait(60)
    raise ValueError("no such luck")
y = f(x)
z, other = g(y), g(x[:1])
assert not z.is_ready() and np.asarray(other)[0, 0] == 2
gate.set()
for result in (z, y, g(z)):
    try:
        result.block_until_ready()
    except Exception as error:
        assert "no such luck" in str(error), error
    else:
        raise AssertionError("there is no error")
np.testing.assert_array_equal(np.asarray(g(x)), x + 1)
print("end")
""")


def test_a_callback_may_use_the_device() -> None:
    passes("""
def wait(x):
    return np.asarray(f2(g(jnp.asarray(x))))
f2 = jax.jit(work)
f2(x)
np.testing.assert_array_equal(np.asarray(f(x)), 2 * np.asarray(f2(x + 1)))
print("end")
""")


def test_the_interpreter_exits_with_work_in_flight() -> None:
    """The callback runs before the interpreter ends."""
    passes("""
import atexit
def wait(x):
    time.sleep(0.3)
    print("end")
    return x
y, z = f(x), f(x)
del y
""")


def test_a_fork_with_work_in_flight() -> None:
    """A child gets an error instead of results that only its parent computes, and may compute others."""
    passes("""
h = jax.jit(work)
d = jax.device_put(x)
h(d).block_until_ready()
y = f(d)
if (child := os.fork()) == 0:
    try:
        y.block_until_ready()
    except Exception as error:
        z = h(d)
        os._exit(7 if "forked" in str(error) and not z.is_ready() and (np.asarray(z) == x).all() else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
gate.set()
np.testing.assert_array_equal(np.asarray(y), 2 * x)
print("end")
""")


def test_several_devices() -> None:
    script = """
from jax.sharding import PartitionSpec as P
mesh = jax.make_mesh((2,), ("i",))
def total(x):
    y = work(x)
    return jax.lax.psum(y, "i") + y
h = jax.jit(jax.shard_map(total, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False))
two = jax.device_put(np.concatenate([x, 2 * x]), jax.NamedSharding(mesh, P("i")))
y = h(two)
for _ in range(3):
    z = h(two)
assert not z.is_ready()
np.testing.assert_array_equal(np.asarray(z), np.asarray(y))
np.testing.assert_array_equal(np.asarray(y)[:500], (2 + 2**21) * x)
print("end")
"""
    done = run("-W", "ignore", "-c", START + script, TRIVIUM_NUM_DEVICES="2")
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["end"]), done.stderr
