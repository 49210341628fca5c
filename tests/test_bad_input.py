"""Bad input to any public function raises one clear error of ours, and never leads to a crash or a wrong result;
unusual valid input gives the right result."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import trivium
from trivium.executable import Executable

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 3


def absolute(kind: str) -> Executable:
    """A compiled program that returns the absolute value of its argument."""
    text = f"func.func @main(%x: {kind}) -> {kind} {{ %0 = stablehlo.abs %x : {kind} return %0 : {kind} }}"
    return trivium.compile(trivium.parse(text))


@pytest.fixture(scope="module")
def run() -> Executable:
    return absolute("tensor<2x3xf32>")


# Public functions


def identity() -> trivium.Module:
    return trivium.parse("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: trivium.parse(3), "the text is a int, expected a str"),
        (lambda: trivium.parse(b"module {}"), "the text is a bytes, expected a str"),
        (lambda: trivium.load(None), "the path is a NoneType, expected a str or a Path"),
        (lambda: trivium.load("nowhere.mlir"), "nowhere.mlir does not exist"),
        (lambda: trivium.load(__file__), "has the suffix '.py', expected one of .bc, .h5, .keras, .mlir"),
        (lambda: trivium.compile("module {}"), "the program is a str, expected a Module"),
        (lambda: trivium.evaluate(len), "the program is a builtin_function_or_method, expected a Module"),
        (lambda: trivium.compile(identity(), device="tpu"), "unknown device 'tpu'; expected one of cpu"),
        (lambda: trivium.compile(identity(), threads=0), "threads has 0, expected an integer of at least 1"),
        (lambda: trivium.compile(identity(), device=None), "the device is None, expected its name, such as 'cpu'"),
        (lambda: trivium.compile(identity(), fast_math="no"), "fast_math has 'no', expected True or False"),
        (lambda: trivium.compile(identity(), tf32=1), "tf32 has 1, expected True or False"),
        (lambda: trivium.evaluate(identity(), X[0, :2], function=[]), "has no function [], expected one of main"),
        (lambda: trivium.load("a" * 5000 + ".mlir"), "File name too long"),
        (lambda: trivium.load("a\0b.mlir"), "expected a str without null characters"),
        (lambda: trivium.load_executable("a\0b"), "expected a str without null characters"),
        (lambda: identity().save(None), "the path is a NoneType, expected a str or a Path"),
        (lambda: identity().save("x.mlirbc", version=3), "the version is 3, expected three numbers"),
        (lambda: identity().show(3), "the path is a int, expected a str or a Path"),
        (lambda: trivium.compile(identity()).save(None), "the path is a NoneType, expected a str or a Path"),
        (lambda: trivium.compile(identity()).show(None), "the path is a NoneType, expected a str or a Path"),
        (lambda: trivium.compile(identity()).profile(X[0, :2], runs="3"), "runs has '3', expected an integer"),
        (lambda: trivium.compile(identity()).stage("wasm"), "there is no stage 'wasm', expected one of graph"),
        (lambda: trivium.compile(trivium.parse("module {}")), "the module has no function main"),
    ],
)
def test_the_front_door_refuses(call: Any, message: str) -> None:
    with pytest.raises(trivium.Error) as caught:
        call()
    assert message in str(caught.value)


def test_a_program_that_breaks_a_rule_does_not_compile() -> None:
    module = trivium.parse(
        "func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) -> tensor<2xf32> {\n"
        '  %0 = "stablehlo.add"(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> tensor<2xf32>\n'
        "  return %0 : tensor<2xf32>\n}"
    )
    with pytest.raises(trivium.VerificationError, match=r"add: \[C1\]") as caught:
        trivium.compile(module)
    assert "<text>:2" in str(caught.value)


def test_dynamic_shapes_are_those_of_the_arguments() -> None:
    run = absolute("tensor<?x3xf32>")
    assert run(np.full((2, 3), -1, np.float32))[0].tolist() == [[1] * 3] * 2
    with pytest.raises(trivium.ExecutionError, match=r"argument 0 of main has shape \(2, 4\), expected \(None, 3\)"):
        run(np.ones((2, 4), np.float32))
    with pytest.raises(trivium.ExecutionError, match="main was given 0 arguments, expected 1"):
        run()


@pytest.mark.parametrize("wish", ["many", "0", "-1", "1.5", "99999999999", "\u0663"])
def test_numbers_of_threads(wish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIVIUM_NUM_THREADS", wish)
    with pytest.raises(trivium.Error, match=r"TRIVIUM_NUM_THREADS has .*, expected a number from 1 to 4096"):
        absolute("tensor<2xf32>")


def test_a_declaration_does_not_compile() -> None:
    module = trivium.parse("func.func private @main() -> tensor<f32>")
    with pytest.raises(trivium.CompileError, match="@main has no body, only a declaration"):
        trivium.compile(module)


def test_unknown_custom_calls_do_not_compile() -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @fly(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    with pytest.raises(trivium.CompileError, match="has the target 'fly', which is not registered"):
        trivium.compile(trivium.parse(text))


@pytest.mark.parametrize("framework", ["torch", "tensorflow", "jax", "onnx"])
def test_a_missing_framework_names_its_extra(framework: str, tmp_path: Path) -> None:
    """Runs in a process where the framework cannot be imported."""
    script = f"""
import sys
sys.modules[{framework!r}] = None  # as if it were not installed
import trivium

doors = [lambda: trivium.from_{framework}(None), lambda: getattr(trivium, {framework!r})]
if {framework!r} == "jax":
    doors.append(lambda: trivium.jit(abs))
if {framework!r} == "onnx":
    doors[1] = lambda: trivium.load("model.onnx")
for door in doors:
    try:
        door()
    except trivium.Error as error:
        print(error)
"""
    (tmp_path / "model.onnx").touch()
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == (3 if framework == "jax" else 2)
    assert all(f"(no module {framework}), expected: pip install 'trivium[{framework}]'" in line for line in lines)


# At call time


class Broken:
    """An array of another library that cannot be read at the moment."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("it lies on another device")


class Lazy:
    """An array of another library."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return X


def read_only() -> np.ndarray:
    array = X.copy()
    array.flags.writeable = False
    return array


def unaligned(array: np.ndarray) -> np.ndarray:
    """Returns the same elements, at an address that is one byte off."""
    memory = np.zeros(array.nbytes + 1, np.uint8)
    shifted = memory[1:].view(array.dtype).reshape(array.shape)
    shifted[...] = array
    return shifted


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        pytest.param("tensor<2x3xf32>", np.repeat(X, 2, 1)[:, ::2], id="non-contiguous"),
        pytest.param("tensor<2x3xf32>", X[::-1, ::-1], id="negative strides"),
        pytest.param("tensor<2x3xf32>", np.asfortranarray(X), id="Fortran order"),
        pytest.param("tensor<2x3xf32>", np.broadcast_to(np.float32(-1), (2, 3)), id="broadcast"),
        pytest.param("tensor<2x3xf32>", read_only(), id="read-only"),
        pytest.param("tensor<2x3xf32>", unaligned(X), id="unaligned"),
        pytest.param("tensor<2x3xf32>", X.view(np.matrix), id="matrix"),
        pytest.param("tensor<2x3xf32>", Lazy(), id="array protocol"),
        pytest.param("tensor<1003xf64>", unaligned(np.linspace(-1, 1, 1003)), id="unaligned, long"),
        pytest.param("tensor<f32>", np.float32(-2), id="scalar"),
        pytest.param("tensor<f32>", np.array(-2, np.float32), id="0-d"),
        pytest.param("tensor<f32>", -2.5, id="Python float"),
        pytest.param("tensor<f32>", -2, id="Python int as float"),
        pytest.param("tensor<i8>", -2, id="Python int"),
        pytest.param("tensor<0x3xf32>", np.empty((0, 3), np.float32), id="empty"),
        pytest.param("tensor<2xf64>", [-1.0, 2.0], id="list"),
        pytest.param("tensor<2xbf16>", np.array([-1, 2], ml_dtypes.bfloat16), id="bfloat16"),
    ],
)
def test_unusual_arrays_are_read(kind: str, value: Any) -> None:
    compiled = absolute(kind)
    (result,) = compiled(value)
    expected = compiled.signature.arguments[0].type
    np.testing.assert_array_equal(result, np.abs(np.asarray(value)).astype(expected.dtype))
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    (evaluated,) = trivium.evaluate(compiled.graph, value)
    np.testing.assert_array_equal(result, evaluated)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(X.astype(np.float64), "has dtype float64, expected float32", id="dtype"),
        pytest.param(X.astype(">f4"), "has dtype >f4, expected float32", id="wrong-endian"),
        pytest.param(X.astype(object), "has dtype object, expected float32", id="objects"),
        pytest.param(X.tolist(), "has dtype float64, expected float32", id="list"),
        pytest.param(np.zeros((2, 3), [("real", "f4")]), ".*expected float32", id="structured"),
        pytest.param(X.T, r"has shape \(3, 2\), expected \(2, 3\)", id="shape"),
        pytest.param(X[0], r"has shape \(3,\), expected \(2, 3\)", id="rank"),
        pytest.param(1.0, r"has shape \(\), expected \(2, 3\)", id="number"),
        pytest.param(True, "has dtype bool, expected float32", id="bool"),
        pytest.param(1j, "has dtype complex128, expected float32", id="complex"),
        pytest.param(None, "has dtype object, expected float32", id="None"),
        pytest.param("abc", "has dtype <U3, expected float32", id="str"),
        pytest.param([[1, 2], [3]], "has list, which NumPy cannot read", id="ragged"),
        pytest.param(np.ma.array(X, mask=X > 0), "is a masked array", id="masked"),
        pytest.param(Broken(), "has Broken, which NumPy cannot read: it lies on another device", id="unreadable"),
    ],
)
@pytest.mark.parametrize("way", ["compiled", "evaluated"])
def test_wrong_arguments_are_refused(run: Executable, way: str, value: Any, message: str) -> None:
    with pytest.raises(trivium.ExecutionError, match=f"argument 0 of main {message}"):
        run(value) if way == "compiled" else trivium.evaluate(run.graph, value)


@pytest.mark.parametrize("arguments", [(), (X, X)])
def test_a_wrong_count_is_refused(run: Executable, arguments: tuple) -> None:
    message = f"main was given {len(arguments)} arguments, expected 1"
    with pytest.raises(trivium.ExecutionError, match=message):
        run(*arguments)
    with pytest.raises(trivium.ExecutionError, match=message):
        trivium.evaluate(run.graph, *arguments)


def test_a_number_too_large_is_refused() -> None:
    with pytest.raises(trivium.ExecutionError, match="has 300, which int8 cannot hold"):
        absolute("tensor<i8>")(300)


def test_results_too_large_for_memory_are_reported() -> None:
    huge = trivium.parse(
        "func.func @main() -> tensor<1000000000000000xf32> {\n"
        "  %0 = stablehlo.iota dim = 0 : tensor<1000000000000000xf32>\n"
        "  return %0 : tensor<1000000000000000xf32>\n}"
    )
    with pytest.raises(
        trivium.CompileError, match=r"4000000000000000 bytes .* expected at most .* the available memory"
    ):
        trivium.compile(huge)


def test_results_are_the_callers_own(run: Executable) -> None:
    (first,), (second,) = run(X), run(X)
    first[...] = 0
    np.testing.assert_array_equal(second, np.abs(X))


def test_nan_and_infinity_pass() -> None:
    values = np.array([np.nan, -np.inf, -0.0], np.float32)
    (result,) = absolute("tensor<3xf32>")(values)
    np.testing.assert_array_equal(result, [np.nan, np.inf, 0.0])


@pytest.mark.torch
def test_tensors_of_pytorch_are_read(run: Executable) -> None:
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(run(torch.tensor(X))[0], np.abs(X))
    np.testing.assert_array_equal(run(torch.tensor(X.T.copy()).T)[0], np.abs(X))
    for value, message in (
        (torch.tensor(X, requires_grad=True), "Tensor, .*requires grad"),
        (torch.empty(2, 3, device="meta"), "Tensor, .*meta"),
        (torch.tensor(X, dtype=torch.bfloat16), "dtype bfloat16, expected float32"),
    ):
        with pytest.raises(trivium.ExecutionError, match=f"argument 0 of main has {message}"):
            run(value)


@pytest.mark.jax
def test_arrays_of_jax_are_read(run: Executable) -> None:
    jnp = pytest.importorskip("jax.numpy")
    np.testing.assert_array_equal(run(jnp.array(X))[0], np.abs(X))
    np.testing.assert_array_equal(absolute("tensor<2xbf16>")(jnp.array([-1, 2], jnp.bfloat16))[0], [1, 2])


@pytest.mark.tensorflow
def test_tensors_of_tensorflow_are_read(run: Executable) -> None:
    tf = pytest.importorskip("tensorflow")
    np.testing.assert_array_equal(run(tf.constant(X))[0], np.abs(X))
    np.testing.assert_array_equal(run(tf.Variable(X))[0], np.abs(X))


# Outside of a run


def test_another_library_is_not_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    from trivium.backends.native import load

    monkeypatch.setenv("TRIVIUM_RUNTIME", __file__)
    with pytest.raises(trivium.ExecutionError, match="is not Trivium's native runtime"):
        load.__wrapped__()


@pytest.mark.parametrize("content", [b"", b"no machine code"], ids=["truncated", "junk"])
def test_a_damaged_file_in_the_cache_is_compiled_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path))
    (before,) = absolute("tensor<5xf32>")(np.full(5, -1, np.float32))
    files = {file: file.read_bytes() for file in tmp_path.iterdir()}
    assert files
    for file, whole in files.items():
        file.write_bytes(content or whole[: len(whole) // 2])
    (after,) = absolute("tensor<5xf32>")(np.full(5, -1, np.float32))
    np.testing.assert_array_equal(after, before)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == files


def test_without_a_writable_cache_nothing_is_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRIVIUM_CACHE", str(tmp_path / "file" / "folder"))
    assert absolute("tensor<f32>")(-1.0)[0] == 1
