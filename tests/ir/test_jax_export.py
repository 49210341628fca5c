"""Programs that `jax.export` writes: they are read as artifacts and as text, verified, written and read again, and
their results equal JAX's."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax import export, lax
from jaxlib.mlir.dialects import stablehlo

from tests.ir.bytecode.mlir import context
from tests.ir.exported_programs import CASES, X
from trivium.ir.bytecode import deserialize, serialize
from trivium.ir.bytecode.composites import recompose
from trivium.ir.custom_calls import CUSTOM_CALLS
from trivium.ir.equality import difference
from trivium.ir.errors import ExecutionError
from trivium.ir.func import Module
from trivium.ir.interpreter import evaluate
from trivium.ir.location import SHOWN_CALLERS, Location
from trivium.ir.text import parse, print_module

pytestmark = pytest.mark.jax


@pytest.mark.parametrize("name", CASES)
def test_program(name: str, mlir) -> None:
    case = CASES[name]
    with jax.enable_x64(case.x64):
        exported = case.export()
        expected = jax.tree.leaves(jax.jit(case.function)(*case.arguments))
    module = read(exported.mlir_module_serialized, exported.mlir_module(), mlir)
    arguments = [case.arguments[index] for index in exported.module_kept_var_idx]
    for one, other in zip(evaluate(module, *arguments), expected, strict=True):
        agree(one, np.asarray(other), case.tolerance)


def read(data: bytes, text: str, mlir: Callable[[str], str]) -> Module:
    """Returns the program in an artifact, after checking that the text contains the same program, and that writing it
    in any form preserves it."""
    module, expected = deserialize(data), parse(text)
    recompose(expected)
    module.verify()
    assert difference(expected, module) == ""
    assert print_module(expected, locations=True) == print_module(module, locations=True)
    for written in (print_module(module, generic=True), print_module(module, locations=True)):
        assert difference(parse(written), module) == ""
        assert difference(parse(mlir(written)), module) == ""
    assert difference(deserialize(serialize(module)), module) == ""
    return module


def agree(one: np.ndarray, other: np.ndarray, tolerance: float) -> None:
    assert (one.dtype, one.shape) == (other.dtype, other.shape)
    if other.dtype.kind in "biu":
        np.testing.assert_array_equal(one, other)
        return
    wide = np.complex128 if other.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize(
    ("shape", "constraints", "given"),
    [
        ("2*b, c", (), (3, 1)),
        ("2*b, c", (), (0, 1)),
        ("b, b", (), (2, 3)),
        ("b + 3,", (), (3,)),
        ("b, c", ("b >= c",), (2, 3)),
        ("b, c", ("mod(b, 3) == 1",), (5, 1)),
        ("b, 4", ("b <= 7",), (8, 4)),
    ],
)
def test_assertion_of_shapes(shape, constraints, given):
    """A failing assertion has JAX's message."""
    argument = np.zeros(given, np.float32)
    specified = export.symbolic_shape(shape, constraints=constraints)
    exported = export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct(specified, np.float32))
    with pytest.raises(ValueError, match="Input shapes do not match") as expected:
        exported.call(argument)
    with pytest.raises(ExecutionError) as caught:
        evaluate(deserialize(exported.mlir_module_serialized), argument)
    assert caught.value.message == str(expected.value)


def test_deep_stacks(mlir):
    """JAX records up to a hundred callers of each op."""

    def function(x, depth=150):
        return function(x, depth - 1) if depth else jnp.sin(x)

    exported = export.export(jax.jit(lambda x: function(x)))(X)
    module = read(exported.mlir_module_serialized, exported.mlir_module(), mlir)
    assert max(map(depth_of, (op.location for op in module.walk()))) > 90
    assert max(op.location.describe().count("test_jax_export.py") for op in module.walk()) == SHOWN_CALLERS


def depth_of(place: Location) -> int:
    return 1 + max(map(depth_of, place.children), default=0)


def test_sharded(mlir):
    """Annotations of Shardy are kept, and a program for one device runs."""
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("x",))
    rows = jax.NamedSharding(mesh, jax.P("x"))

    def function(x):
        y = lax.with_sharding_constraint(2 * x, jax.NamedSharding(mesh, jax.P(None, "x")))
        return jax.shard_map(lambda y: lax.psum(y, "x"), mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P())(y)

    exported = export.export(jax.jit(function, in_shardings=rows))(jax.ShapeDtypeStruct(X.shape, X.dtype))
    module = read(exported.mlir_module_serialized, exported.mlir_module(), mlir)
    assert {"sdy.mesh", "sdy.sharding_constraint"} <= {op.NAME for op in module.walk()}
    agree(evaluate(module, X)[0], 2 * X, 0)


def recorded() -> dict[str, Any]:
    """Returns the programs that JAX keeps to ensure that it can always read them, with their inputs and results."""
    folder = importlib.import_module("jax._src.internal_test_util.export_back_compat_test_data")
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        for name, value in vars(importlib.import_module(info.name)).items():
            if name.startswith("data_") or name == "data":
                _add_programs(found, f"{info.name.rpartition('.')[2]} {name}", value)
    return found


def _add_programs(found: dict[str, Any], name: str, value: dict[str, Any]) -> None:
    if "mlir_module_serialized" in value:
        found[name] = value
        return
    for key, inner in value.items():
        _add_programs(found, f"{name} {key}", inner)


RECORDED = recorded()
OTHERWISE = {"tpu_stablehlo_dynamic_reduce_window data_variadic_2023_06_17"}
"""Its initial values are not identities, and one of its reducers is not associative, so results depend on the
machine."""


EIGENVALUES = {"cpu_eig_lapack_geev": 0, "cpu_eigh_lapack_syev": 1, "cpu_schur_lapack_gees": None}
"""The index of the result with the eigenvalues. Only these are compared: the matrices are singular, so that
eigenvectors are not unique; `test_lapack` checks vectors."""


def compare_recorded(name: str, results: list[np.ndarray], expected: list[np.ndarray]) -> None:
    family = name.partition(" ")[0]
    if family not in EIGENVALUES:
        for one, other in zip(results, expected, strict=True):
            agree(one, other, 1e-5)
        return
    assert [(one.dtype, one.shape) for one in results] == [(other.dtype, other.shape) for other in expected]
    if (index := EIGENVALUES[family]) is not None:
        one, other = np.sort(results[index]), np.sort(expected[index])
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * float(abs(other).max()))


@pytest.mark.parametrize("name", RECORDED)
def test_recorded(name, mlir):
    program = RECORDED[name]
    data = program["mlir_module_serialized"]
    theirs = stablehlo.deserialize_portable_artifact(context(), data)
    module = read(data, theirs.operation.get_asm(enable_debug_info=True), mlir)
    known = set(program["custom_call_targets"]) <= CUSTOM_CALLS.keys()
    if known and program.get("nr_devices", 1) == 1 and name not in OTHERWISE:
        expected = [np.asarray(output) for output in program["expected_outputs"]]
        compare_recorded(name, evaluate(module, *program["inputs"]), expected)


def test_several_platforms(mlir):
    """The first argument says which platform the program runs on."""

    def function(x):
        return lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos)

    exported = export.export(jax.jit(function), platforms=["cpu", "tpu"])(X)
    module = read(exported.mlir_module_serialized, exported.mlir_module(), mlir)
    for index, expected in enumerate((np.sin, np.cos)):
        agree(evaluate(module, np.int32(index), X)[0], expected(X), 1e-5)


def test_ordered_effects(mlir):
    """Programs take and return a token for each ordered effect."""
    from jax._src import core, effects
    from jax._src.interpreters import mlir as lowering

    class Effect(effects.Effect):
        def __str__(self):
            return "trivium test effect"

    effect, primitive = Effect(), core.Primitive("trivium_test")
    for known in (effects.lowerable_effects, effects.ordered_effects):
        known.add_type(Effect)
    primitive.def_effectful_abstract_eval(lambda aval: (aval, {effect}))

    def lower(context, x):
        tokens = context.tokens_in.get(effect)
        context.set_tokens_out(lowering.TokenSet({effect: stablehlo.after_all([tokens])}))
        return [stablehlo.add(x, x)]

    lowering.register_lowering(primitive, lower)
    exported = export.export(jax.jit(lambda x: primitive.bind(primitive.bind(x))))(X)
    assert exported.ordered_effects
    module = read(exported.mlir_module_serialized, exported.mlir_module(), mlir)
    token, result = evaluate(module, None, X)
    assert token is None
    agree(result, 4 * X, 0)
