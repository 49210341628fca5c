"""From the programs of a PJRT host to those that the native runtime runs: programs in each format, the reply about
them, and error codes."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from trivium.backends.artifact import from_bytes, to_bytes
from trivium.backends.plugin.compiler import ARTIFACT, BYTECODE, HLO, TYPES, Kept, compile_program, explanation
from trivium.backends.plugin.structures import CompileReply, CompileRequest
from trivium.compiler import driver
from trivium.ir.bytecode import serialize
from trivium.ir.errors import CompileError, Error, ParseError, UnsupportedOpError, VerificationError
from trivium.ir.text import parse

TEXT = """func.func @main(%x: tensor<3x4xf32> {jax.buffer_donor = true}, %n: tensor<5xcomplex<f64>>)
    -> (tensor<3x4xf32>, tensor<5xcomplex<f64>>) {
  %0 = stablehlo.cosine %x : tensor<3x4xf32>
  return %0, %n : tensor<3x4xf32>, tensor<5xcomplex<f64>>
}"""


def compiled(code: bytes, format: str = "mlir", replicas: int = 1, partitions: int = 1) -> tuple[CompileReply, Kept]:
    name = format.encode()
    buffers = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(name, len(name))
    places = [ctypes.cast(buffer, ctypes.c_void_p) for buffer in buffers]
    request = CompileRequest(places[0], len(code), places[1], len(name), replicas, partitions)
    reply = CompileReply()
    return reply, compile_program(request, reply, [], [])


def slots(reply: CompileReply) -> list[tuple[int, tuple[int, ...]]]:
    found = [reply.slots[number] for number in range(reply.num_arguments + reply.num_results)]
    return [(slot.type, tuple(slot.dims[: slot.rank])) for slot in found]


def run(reply: CompileReply, *arrays: np.ndarray) -> int:
    """Calls the entry as the native runtime does: arguments, then results."""
    table = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    memory = np.zeros(reply.arena_size + reply.arena_alignment, np.uint8)
    arena = memory.ctypes.data + -memory.ctypes.data % reply.arena_alignment
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(reply.entry)
    return entry(ctypes.addressof(table), arena, reply.context)


@pytest.mark.parametrize("form", ["text", "bytecode", "artifact"])
def test_programs_in_each_format(form: str) -> None:
    module = parse(TEXT)
    code = {
        "text": lambda: TEXT.encode(),
        "bytecode": lambda: serialize(module),
        "artifact": lambda: compiled(TEXT.encode())[1].serialized(),
    }[form]()
    assert code.startswith(BYTECODE) == (form == "bytecode")
    reply, kept = compiled(code, ARTIFACT if form == "artifact" else "mlir")
    expected = [(TYPES["float32"], (3, 4)), (TYPES["complex128"], (5,))]
    assert slots(reply) == 2 * expected
    assert (reply.num_arguments, reply.num_results) == (2, 2)
    assert (reply.name, reply.donated[:2], reply.aliases[:2]) == (b"main", [1, 0], [0, -1])
    assert reply.transcendentals == 12
    assert reply.generated_code_size == len(kept.executable.artifact.code)
    x, n = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(5) * 1j
    y, m = np.empty_like(x), np.empty_like(n)
    assert run(reply, x, n, y, m) == 0
    np.testing.assert_allclose(y, np.cos(x), rtol=1e-6)
    np.testing.assert_array_equal(m, n)


def test_each_executable_has_a_handle_and_each_program_a_fingerprint() -> None:
    (first, _), (again, _), (other, _) = (compiled(code.encode()) for code in (TEXT, TEXT, TEXT + "\n"))
    assert len({first.handle, again.handle, other.handle}) == 3
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert len(first.fingerprint) == 64


def test_serialized_programs_keep_their_fingerprint_and_their_constants() -> None:
    """The bytes contain everything, and can be written again."""
    numbers = np.arange(12, dtype=np.float32)
    constant = f'%c = stablehlo.constant dense<"0x{numbers.tobytes().hex()}"> : tensor<3x4xf32>'
    text = TEXT.replace("%0 = stablehlo.cosine %x", f"{constant}\n%0 = stablehlo.add %x, %c")
    reply, kept = compiled(text.encode())
    data = kept.serialized()
    assert from_bytes(data).is_whole
    loaded, kept_again = compiled(data, ARTIFACT)
    assert loaded.fingerprint == reply.fingerprint
    assert loaded.constant_size == reply.constant_size
    assert from_bytes(kept_again.serialized()).code == from_bytes(data).code
    x, n = np.ones((3, 4), np.float32), np.zeros(5, np.complex128)
    y, m = np.empty_like(x), np.empty_like(n)
    assert run(loaded, x, n, y, m) == 0
    np.testing.assert_array_equal(y, 1 + numbers.reshape(3, 4))


def test_serialized_programs_have_what_hosts_show() -> None:
    _, kept = compiled(TEXT.encode())
    data = kept.serialized()
    _, again = compiled(data, ARTIFACT)
    assert again.optimized_program() == kept.optimized_program()
    artifact = from_bytes(data)
    _, earlier = compiled(to_bytes(replace(artifact, texts={**artifact.texts, HLO: ""})), ARTIFACT)
    with pytest.raises(UnsupportedOpError, match="main was serialized without its optimized program"):
        earlier.optimized_program()
    assert from_bytes(earlier.serialized()).texts[HLO] == ""


def test_programs_of_several_devices_hide_the_number_of_the_device() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
    func.func @main(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x6xf32> {
      %0 = stablehlo.reverse %x, dims = [0] : tensor<4x6xf32>
      return %0 : tensor<4x6xf32>
    }"""
    reply, _ = compiled(text.encode(), partitions=2)
    assert (reply.num_arguments, reply.num_results) == (1, 1)
    assert tuple(reply.pieces[0].dims[:2]) == (2, 6)
    assert reply.pieces[0].begins[:4] == [0, 0, 2, 0]
    assert len(reply.shardings.split()) == 2


# Errors


@pytest.mark.parametrize(
    ("code", "format", "reason"),
    [
        (TEXT.encode(), "hlo", "the program's format is 'hlo', expected 'mlir'"),
        (b"\xff\xfe\xfd", "mlir", "the program is neither bytecode nor text"),
    ],
)
def test_formats_that_nobody_reads(code: bytes, format: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        compiled(code, format)


@pytest.mark.parametrize(
    ("code", "format"),
    [(b"func.func @main(", "mlir"), (BYTECODE + b"\0\1\2", "mlir"), (b"", "mlir"), (b"nothing", ARTIFACT)],
)
def test_inputs_that_are_not_programs(code: bytes, format: str) -> None:
    """Whatever is wrong with the program, the error is one of ours, and has a code."""
    with pytest.raises(Error) as error:
        compiled(code, format)
    assert explanation(error.value)[1]


def test_errors_of_compiling_name_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise CompileError("no")

    monkeypatch.setattr(driver, "compile", refuse)
    with pytest.raises(CompileError, match="try:   trivium debug minify "):
        compiled(TEXT.encode())


def test_dynamic_shapes_are_refused() -> None:
    dynamic = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n return %x : tensor<?xf32>\n}"
    with pytest.raises(CompileError, match="main has dynamic shapes, expected static ones"):
        compiled(dynamic.encode())


def test_artifacts_of_other_machines_are_refused() -> None:
    artifact = from_bytes(compiled(TEXT.encode())[1].serialized())
    foreign = replace(artifact, machine=replace(artifact.machine, triple="riscv64-unknown-linux-gnu"))
    with pytest.raises(Error, match="riscv64-unknown-linux-gnu is not"):
        compiled(to_bytes(foreign), ARTIFACT)


def test_types_without_a_number_are_refused() -> None:
    assert ml_dtypes.float6_e2m3fn is not None
    text = "func.func @main(%x: tensor<4xf6E2M3FN>) -> tensor<4xf6E2M3FN> {\n return %x : tensor<4xf6E2M3FN>\n}"
    with pytest.raises(CompileError, match="PJRT has no element type for float6_e2m3fn"):
        compiled(text.encode())


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UnsupportedOpError("an op", []), 12, "an op"),
        (ParseError("bad text"), 3, "bad text"),
        (VerificationError("bad types"), 3, "bad types"),
        (CompileError("cannot"), 13, "cannot"),
        (Error("something"), 13, "something"),
        (MemoryError(), 8, "there is not enough memory to compile the program"),
        (KeyboardInterrupt(), 1, "compiling was interrupted"),
        (ZeroDivisionError("a bug"), 13, "ZeroDivisionError: a bug"),
        (SystemExit(3), 13, "SystemExit: 3"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_codes_of_errors(error: BaseException, code: int, text: str) -> None:
    """PJRT's codes, which are those of absl."""
    found, explained = explanation(error)
    assert found == code
    assert text in explained


def test_types_are_named_as_numpy_names_them() -> None:
    names = TYPES.keys() - {"token"}
    assert {np.dtype(getattr(ml_dtypes, name, name)).name for name in names} == names
    assert sorted(TYPES.values()) == list(range(1, len(TYPES) + 1))
