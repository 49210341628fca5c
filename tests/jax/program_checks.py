"""Checks of optimized programs on Trivium's device: what `as_text()` shows of them, beside what XLA shows of the same
functions."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable
from jax.sharding import Mesh, NamedSharding, PartitionSpec

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def opcodes(text):
    """Returns the opcodes of a program with the shapes of their results."""
    found = re.findall(r" = (\(?[a-z]\w*\[[^ ]*\][^ ]*|\(.*?\)) ([\w-]+)\(", text)
    return {(re.sub(r"\{[\d,]*\}", "", shape), opcode) for shape, opcode in found}


def text_on(platform, function, *args):
    with jax.default_device(jax.devices(platform)[0]):
        return jax.jit(function).lower(*args).compile().as_text()


FUNCTIONS = {
    ("tanh", "sine", "multiply", "add"): lambda x: jnp.tanh(x) + x * jnp.sin(x),
    ("sort",): lambda x: jnp.sort(x, axis=1),
    ("reduce", "maximum"): lambda x: x.max(axis=1),
    ("dot",): lambda x: x @ x.T,
    ("dynamic-update-slice",): lambda x: jax.lax.dynamic_update_slice(x, x[:2, :2] + 1, (x[0, 0].astype(int), 0)),
}
"""Functions, and the opcodes that both compilers keep as they are."""


def same_instructions_as_xla():
    for kept, function in FUNCTIONS.items():
        ours, theirs = (
            {each for each in opcodes(text_on(platform, function, X)) if each[1] in kept}
            for platform in (jax.default_backend(), "cpu")
        )
        assert ours == theirs, (ours, theirs)
        assert {opcode for _, opcode in ours} == set(kept), ours


def collectives_in_texts():
    """With the groups that XLA has for the same function."""
    mesh = Mesh(np.array(jax.devices()), ("x",))
    parts = PartitionSpec("x")

    def inside(x):
        return jax.lax.psum(x, "x"), jax.lax.all_gather(x, "x"), jax.lax.ppermute(x, "x", [(0, 1), (1, 0)])

    specs = {"mesh": mesh, "in_specs": parts, "out_specs": (PartitionSpec(), parts, parts)}
    built = jax.jit(jax.shard_map(inside, **specs)).lower(X).compile()
    text = built.as_text()
    for line in (
        r"f32\[4,4\]\{1,0\} all-reduce\(.*replica_groups=\{\{0,1\}\}.*to_apply=",
        r"f32\[2,4,4\]\{2,1,0\} all-gather\(.*replica_groups=\{\{0,1\}\}, dimensions=\{0\}",
        r"f32\[4,4\]\{1,0\} collective-permute\(.*source_target_pairs=\{\{0,1\},\{1,0\}\}",
    ):
        assert re.search(line, text), (line, text)
    assert "num_partitions=2" in text
    data = serialize_executable.serialize(built)
    assert serialize_executable.deserialize_and_load(*data).as_text() == text


def gathered_arguments():
    mesh = Mesh(np.array(jax.devices()), ("x",))
    x = jax.device_put(X, NamedSharding(mesh, PartitionSpec("x")))
    text = jax.jit(lambda x: x.T @ x).lower(x).compile().as_text()
    assert re.search(r"f32\[8,4\]\{1,0\} all-gather\(%Arg_0", text), text


def control_flow_in_texts():
    def function(x, n):
        x = jax.lax.fori_loop(0, n, lambda i, x: jnp.sin(x) * i, x)
        return jax.lax.cond(n > 3, lambda x: x + 1, lambda x: jnp.cos(x), x)

    text = jax.jit(function).lower(X, 3).compile().as_text()
    name = 'op_name="jit(function)/while"'
    for part in (" while(", ", condition=%", ", body=%", " conditional(", name, "source_line="):
        assert part in text, part


def donated_memory_in_texts():
    built = jax.jit(lambda x: x + 1, donate_argnums=0).lower(X).compile()
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in built.as_text()


def numbers_of_all_types_in_texts():
    for name, kind in {"int4": "s4", "bfloat16": "bf16", "complex64": "c64", "float8_e4m3fn": "f8e4m3fn"}.items():
        text = jax.jit(lambda x: x + x).lower(jnp.ones(4, name)).compile().as_text()
        assert re.search(rf" = {kind}\[4\]\{{0(:E\(4\))?\}} (add|fusion|convert)\(", text), text


def kept_programs_are_shown_again():
    built = jax.jit(lambda x: jnp.tanh(x) @ x.T).lower(X).compile()
    text = built.as_text()
    assert built.as_text() == text
    assert " dot(" in text
    data = serialize_executable.serialize(built)
    assert serialize_executable.deserialize_and_load(*data).as_text() == text
    (module,) = built.runtime_executable().hlo_modules()
    assert module.name.startswith("jit_")


CHECKS = (
    same_instructions_as_xla, collectives_in_texts, gathered_arguments, control_flow_in_texts, donated_memory_in_texts,
    numbers_of_all_types_in_texts, kept_programs_are_shown_again,
)  # fmt: skip
