"""Bad input: each raises one clear error, with JAX's own message if JAX rejects it."""

from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax.extend import core

import trivium

pytestmark = pytest.mark.jax


def unknown(name: str) -> Any:
    """A primitive that nothing supports."""
    primitive = core.Primitive(name)
    primitive.def_abstract_eval(lambda x: x)
    return primitive.bind


def test_all_unsupported_primitives_are_listed_at_once() -> None:
    fly, swim = unknown("fly"), unknown("swim")

    def exotic(x: Any) -> Any:
        return fly(x), jax.jit(swim)(x), fly(x + 1)

    with pytest.raises(trivium.UnsupportedOpError) as caught:
        trivium.from_jax(exotic, jnp.ones((3, 3)))
    assert {op.name: op.count for op in caught.value.ops} == {"fly": 2, "swim": 1}
    assert "2 ops have no rule" in str(caught.value)
    assert "test_errors.py:" in str(caught.value)
    assert "exotic" in caught.value.ops[0].first


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (3, (), "from_jax has a int, expected a function or a ClosedJaxpr"),
        (lambda x: x, (), "JAX cannot trace <lambda>.*missing 1 required positional argument"),
        (lambda x: x, ("text",), "JAX cannot trace <lambda>.*'str'"),
        (lambda x: x @ x, (jnp.ones((2, 3)),), "JAX cannot trace <lambda>.*contracting dimensions"),
        (lambda x: x if x > 0 else -x, (1.0,), "JAX cannot trace <lambda>.*boolean conversion"),
    ],
)
def test_functions_that_jax_cannot_trace_are_reported(function: Any, args: tuple, message: str) -> None:
    with pytest.raises(trivium.Error, match=f"(?s){message}"):
        trivium.from_jax(function, *args)


def test_a_closed_jaxpr_has_its_arguments() -> None:
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    with pytest.raises(trivium.Error, match="a ClosedJaxpr comes with 1 arguments, expected none"):
        trivium.from_jax(closed, 1.0)
