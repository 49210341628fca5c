"""Checks of compiling, running and serializing programs."""

from __future__ import annotations

import ctypes
import gc
import threading
from pathlib import Path

import numpy as np

from trivium.backends.table.abi import TYPES
from trivium.backends.table.client import ONE_DEVICE
from trivium.backends.table.executable import PluginExecutable
from trivium.backends.table.plugin import Refusal, address_of, string
from trivium.ir.bytecode import serialize
from trivium.ir.text import parse
from trivium.pjrt.kit import ADD, DONATING, Failure, Kit, X, check, expect

THREADS, RUNS = 8, 100
LEAK_RUNS = 2000
LEAKED = 1.01
"""The largest factor by which resident memory may grow while programs run, disregarding a page for each thread."""


def _expect_results(results: list[np.ndarray], x: np.ndarray = X) -> None:
    for result, expected in zip(results, (x + x, x.T), strict=True):
        expect(np.array_equal(result, expected), "a program has wrong results")


@check("compile")
def text_and_artifacts(kit: Kit) -> None:
    for code in (serialize(parse(ADD)), serialize(parse(ADD), "1.0.0")):
        executable = PluginExecutable(kit.client, parse(ADD).main, _compile(kit, code))
        _expect_results(executable.execute(X))


def _compile(kit: Kit, code: bytes) -> int:
    return kit.plugin.call("Client_Compile", **request_of(kit, code)).executable


def request_of(kit: Kit, code: bytes, *, form: bytes = b"mlir", options: bytes = ONE_DEVICE) -> dict[str, object]:
    program = kit.plugin.record("Program")
    program.code, program.code_size = address_of(code), len(code)
    program.format, program.format_size = address_of(form), len(form)
    kit.alive += code, form, options, program
    return {
        "client": kit.client.handle,
        "program": ctypes.addressof(program),
        "compile_options": address_of(options),
        "compile_options_size": len(options),
    }


@check("compile")
def wrong_programs_are_refused(kit: Kit) -> None:
    code = serialize(parse(ADD))
    for what, request in (
        ("no program", request_of(kit, b"")),
        ("bytes", request_of(kit, b"ML\xefR" + b"\x01" * 60)),
        ("half a program", request_of(kit, code[: len(code) // 2])),
    ):
        kit.refused(what, "Client_Compile", **request)
    kit.refused("an unknown format", "Client_Compile", **request_of(kit, code, form=b"poem"))
    kit.refused("options that are none", "Client_Compile", **request_of(kit, code, options=b"\xff\xff\xff"))
    request = request_of(kit, code)
    kit.refused("no record", "Client_Compile", **{**request, "program": None})


@check("executable")
def descriptions_of_results(kit: Kit) -> None:
    executable = kit.objects["executable"]
    expect(kit.plugin.call("Executable_NumOutputs", executable=executable).num_outputs == 2, "it has 2 results")
    types = kit.call("Executable_OutputElementTypes", executable=executable)
    found = list((ctypes.c_int32 * types.num_output_types).from_address(types.output_types))
    expect(found == [TYPES["float32"]] * 2, f"its results have the types {found}")
    dims = kit.call("Executable_OutputDimensions", executable=executable)
    ranks = list((ctypes.c_size_t * dims.num_outputs).from_address(dims.dim_sizes))
    extents = list((ctypes.c_int64 * sum(ranks)).from_address(dims.dims))
    expect((ranks, extents) == ([2, 2], [4, 6, 6, 4]), f"its results have ranks {ranks} and extents {extents}")
    name = kit.plugin.call("Executable_Name", executable=executable)
    expect(string(name.executable_name, name.executable_name_size), "it has no name")


@check("executable")
def fingerprints_tell_programs_apart(kit: Kit) -> None:
    def fingerprint(text: str) -> str:
        loaded = kit.compile(text)
        made = kit.plugin.call("LoadedExecutable_GetExecutable", loaded_executable=loaded.handle).executable
        found = kit.call("Executable_Fingerprint", executable=made)
        text = string(found.executable_fingerprint, found.executable_fingerprint_size)
        kit.plugin.call("Executable_Destroy", executable=made)
        return text

    other = ADD.replace("stablehlo.add", "stablehlo.multiply")
    expect(fingerprint(ADD) == fingerprint(ADD), "one program has two fingerprints")
    expect(fingerprint(ADD) != fingerprint(other), "two programs have one fingerprint")


@check("executable")
def serialized_executables(kit: Kit) -> None:
    found = kit.call("Executable_Serialize", executable=kit.objects["executable"])
    data = ctypes.string_at(found.serialized_bytes, found.serialized_bytes_size)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(found.serialized_executable_deleter)(found.serialized_executable)
    fields = {"client": kit.client.handle, "serialized_executable": address_of(data)}
    loaded = kit.call("Executable_DeserializeAndLoad", serialized_executable_size=len(data), **fields)
    _expect_results(PluginExecutable(kit.client, parse(ADD).main, loaded.loaded_executable).execute(X))
    kit.refused("half of it", "Executable_DeserializeAndLoad", serialized_executable_size=len(data) // 2, **fields)
    kit.refused("nothing", "Executable_DeserializeAndLoad", serialized_executable_size=0, **fields)


FORMATS = ("hlo_with_config", "hlo", "mlir")
"""The formats in which hosts read optimized programs."""


def _optimized(kit: Kit, executable: int) -> tuple[str, bytes]:
    """Asks for the size of the optimized program, and then for the program."""
    program = kit.plugin.record("Program")
    given = {"executable": executable, "program": ctypes.addressof(program)}
    kit.call("Executable_OptimizedProgram", **given)
    size = program.code_size
    memory = ctypes.create_string_buffer(size)
    program.code = ctypes.addressof(memory)
    program.code_size = size - 1
    kit.refused("less memory than the optimized program needs", "Executable_OptimizedProgram", **given)
    program.code_size = size
    kit.call("Executable_OptimizedProgram", **given)
    expect(program.code_size == size, f"the optimized program has {size} bytes, and then {program.code_size}")
    return string(program.format, program.format_size), memory.raw


@check("executable")
def optimized_programs(kit: Kit) -> None:
    executable = kit.objects["executable"]
    form, code = _optimized(kit, executable)
    expect(form in FORMATS, f"the optimized program has the format {form!r}")
    expect(_optimized(kit, executable) == (form, code), "it is another program when it is asked for again")
    if form != "mlir":
        _expect_message(code)
    kit.refused("no memory for it", "Executable_OptimizedProgram", executable=executable)


def _expect_message(code: bytes) -> None:
    """Expects a protocol buffer: fields with a length, or numbers."""
    at = 0
    while at < len(code):
        tag, at = _varint(code, at)
        value, at = _varint(code, at)
        expect(tag & 7 in (0, 2), f"the optimized program has a field of type {tag & 7}")
        at += value if tag & 7 == 2 else 0
    expect(at == len(code), "the last field of the optimized program ends after it")


def _varint(code: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while at < len(code):
        value, shift, at = value | (code[at] & 0x7F) << shift, shift + 7, at + 1
        if code[at - 1] < 0x80:
            return value, at
    raise Failure("the optimized program ends in a number")


@check("execute")
def wrong_arguments_are_refused(kit: Kit) -> None:
    good, small, whole = kit.buffer(), kit.buffer(X[:2]), kit.buffer(X.astype(np.int32))
    gone = kit.buffer()
    gone.delete()
    for what, given in (
        ("no argument", []),
        ("an argument too many", [good, good]),
        ("another shape", [small]),
        ("another element type", [whole]),
        ("a deleted argument", [gone]),
    ):
        try:
            _execute(kit, kit.executable, [buffer.handle for buffer in given])
        except Refusal:
            continue
        expect(False, f"{what}: PJRT_LoadedExecutable_Execute returned no error")


def _execute(kit: Kit, executable: PluginExecutable, handles: list[int], kept: list[int] | None = None) -> None:
    inputs, outputs = (ctypes.c_void_p * len(handles))(*handles), (ctypes.c_void_p * 2)()
    lists, results = ((ctypes.c_void_p * 1)(ctypes.addressof(each)) for each in (inputs, outputs))
    indices = (ctypes.c_int64 * len(kept or ()))(*(kept or ()))
    options = kit.plugin.record(
        "ExecuteOptions",
        non_donatable_input_indices=ctypes.addressof(indices),
        num_non_donatable_input_indices=len(indices),
    )
    kit.plugin.call(
        "LoadedExecutable_Execute",
        executable=executable.handle,
        options=ctypes.addressof(options),
        argument_lists=ctypes.addressof(lists),
        num_devices=1,
        num_args=len(handles),
        output_lists=ctypes.addressof(results),
    )
    for output in outputs:
        kit.plugin.call("Buffer_Destroy", buffer=output)


@check("execute")
def donated_arguments_are_gone(kit: Kit) -> None:
    executable, buffer = kit.compile(DONATING), kit.buffer()
    _execute(kit, executable, [buffer.handle], kept=[0])
    expect(not kit.plugin.call("Buffer_IsDeleted", buffer=buffer.handle).is_deleted, "an argument is gone that is kept")
    _execute(kit, executable, [buffer.handle])
    expect(kit.plugin.call("Buffer_IsDeleted", buffer=buffer.handle).is_deleted, "a donated argument is still there")
    try:
        _execute(kit, executable, [buffer.handle])
    except Refusal:
        return
    expect(False, "an argument was donated twice")


@check("execute")
def deleted_executables(kit: Kit) -> None:
    executable = kit.compile(ADD)
    expect(not kit.plugin.call("LoadedExecutable_IsDeleted", executable=executable.handle).is_deleted, "it is new")
    kit.plugin.call("LoadedExecutable_Delete", executable=executable.handle)
    expect(kit.plugin.call("LoadedExecutable_IsDeleted", executable=executable.handle).is_deleted, "it was deleted")
    try:
        _execute(kit, executable, [kit.buffer().handle])
    except Refusal:
        return
    expect(False, "a deleted executable runs")


@check("execute")
def results_outlive_their_executable(kit: Kit) -> None:
    executable = kit.compile(ADD)
    results = executable.execute_buffers([kit.buffer()])
    del executable
    gc.collect()
    _expect_results([result.to_numpy() for result in results])


@check("threads")
def threads_share_an_executable(kit: Kit) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            x = X + number
            for _ in range(RUNS):
                _expect_results(kit.executable.execute(x), x)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, f"in a thread: {failures[:1]}")


@check("threads")
def threads_compile(kit: Kit) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            text = ADD.replace("stablehlo.add", "stablehlo.multiply" if number % 2 else "stablehlo.add")
            first = kit.compile(text).execute(X)[0]
            expect(np.array_equal(first, X * X if number % 2 else X + X), "a program has wrong results")
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, f"in a thread: {failures[:1]}")


def resident() -> int:
    """Returns the bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@check("leaks")
def memory_stays_what_it_is(kit: Kit) -> None:
    """Runs programs, and allocates and frees buffers."""
    array = np.zeros(1 << 16, np.float32)

    def work(times: int) -> None:
        for _ in range(times):
            _expect_results(kit.executable.execute(X))
            kit.buffer(array)
        gc.collect()

    work(LEAK_RUNS)
    before = resident()
    work(LEAK_RUNS)
    after = resident()
    expect(after <= before * LEAKED, f"{before >> 10} KiB became {after >> 10} KiB in {LEAK_RUNS} runs")


@check("leaks")
def errors_are_given_back(kit: Kit) -> None:
    def work() -> None:
        for _ in range(LEAK_RUNS * 5):
            kit.refused("no device", "Client_LookupDevice", client=kit.client.handle, id=2**30)
        gc.collect()

    work()
    before = resident()
    work()
    after = resident()
    expect(after <= before * LEAKED, f"{before >> 10} KiB became {after >> 10} KiB in {LEAK_RUNS * 5} errors")
