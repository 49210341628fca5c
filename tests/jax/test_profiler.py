"""JAX's profiler on Trivium's device: it collects each launch, with the user's line."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.jax

pytest.importorskip("jax")

from tests.jax.test_plugin import run

SCRIPT = """
import glob, gzip, json, sys
import jax, jax.numpy as jnp
from jax.profiler import ProfileData
def normalized(x):
    y = jnp.sin(x) @ x
    return jax.nn.softmax(y)
f = jax.jit(normalized)
x = jnp.ones((64, 64))
f(x).block_until_ready()
for turn in range(2):
    folder = sys.argv[1] + str(turn)
    with jax.profiler.trace(folder, create_perfetto_trace=True):
        for _ in range(3):
            f(x).block_until_ready()
    (found,) = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
    (plane,) = [p for p in ProfileData.from_file(found).planes if p.name.startswith("/device:CUSTOM:Trivium")]
    events = [event for line in plane.lines for event in line.events]
    lines = {event.name: dict(event.stats).get("source", "") for event in events}
    dots = [event for event in events if event.name.startswith("dot")]
    assert len(dots) == 3 and all(event.duration_ns > 0 for event in dots), events
    assert any("<string>:6" in line and "dot_general" in line for line in lines.values()), lines
    assert any("<string>:7" in line for line in lines.values()), lines
    with gzip.open(folder + "/" + glob.glob("**/perfetto_trace.json.gz", root_dir=folder, recursive=True)[0]) as file:
        shown = [event.get("name", "") for event in json.load(file)["traceEvents"]]
    assert sum(name.startswith("dot") for name in shown) == 3, shown
f(x)
print("end")
"""


def test_a_trace_has_each_launch_with_its_line(tmp_path: Path) -> None:
    """Twice, of a program that was compiled before."""
    done = run("-c", SCRIPT, str(tmp_path / "trace"))
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["end"]), done.stderr
