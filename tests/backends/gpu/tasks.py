"""What can be tried on a device: records of ops, random programs, and StableHLO's own test programs. Each task returns
what is wrong; it is given something small, so that it can run in another process."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import numpy as np

from tests.backends.gpu import code_object as code_objects
from tests.backends.gpu import simulated_hip
from tests.backends.gpu.simulator import fake, fresh_memory, simulated
from tests.compiler.lowering.coverage import COMPILED, expect_equal, lowered
from tests.compiler.test_conformance import checked_programs
from tests.ir import checks
from tests.random_programs.arrays import arguments_of
from tests.random_programs.programs import (
    program_of_attention,
    program_of_neighbours,
    program_of_products,
    program_of_wide_attention,
    random_program,
)
from tests.random_programs.tracked import Unstable, difference
from tests.random_programs.tracking import Tracker
from trivium.backends import client
from trivium.backends.gpu import amdgcn, lld, rows, tiles, vectors
from trivium.backends.gpu.assembly import assembler, emit_program
from trivium.backends.gpu.client import GpuClient
from trivium.backends.gpu.nvptx import Nvptx, target
from trivium.backends.gpu.spirv import SpirV
from trivium.backends.gpu.spirv import target as spirv_target
from trivium.compiler import pipeline
from trivium.compiler.lower import lower
from trivium.compiler.stages import DEFAULT, CompileOptions
from trivium.ir.errors import ExecutionError
from trivium.ir.func import Module

DEVICE = os.environ.get("TRIVIUM_TEST_DEVICE", "opencl:0")
"""A device, or one of `SIMULATED`, or an AMD architecture, for which `simulated_hip.py` stands."""

SIMULATED = {"simulator": (8, 0), "hopper": (9, 0)}
"""NVIDIA's driver and GPU, as `simulator.py` stands for them, of these compute capabilities. On a Hopper, a single tile
is enough for matrix instructions, so that programs with small products have them."""

_OPEN = ExitStack()
"""What lasts as long as the process."""


@cache
def device() -> GpuClient:
    """Returns the client of the device under test. Nothing is cached: each program is compiled once."""
    os.environ["TRIVIUM_CACHE"] = "0"
    name = DEVICE
    _OPEN.enter_context(fresh_memory())
    if DEVICE in SIMULATED:
        fake().fake_capability(*SIMULATED[DEVICE])
        _OPEN.enter_context(simulated())
        name = "cuda:0"
    elif DEVICE in amdgcn.WAVES:
        _OPEN.enter_context(simulated_hip.simulated(DEVICE))
        name = "hip:0"
    if DEVICE == "hopper":
        tiles.TENSOR_TILES = ((64, 1),)
    found = client(name)
    assert isinstance(found, GpuClient)
    return found


CHOSEN = vectors.FEWEST, rows.SHORTEST
"""From which numbers on threads have vectors, and share rows."""


def share(always: bool) -> None:
    """Lets threads have vectors, and share rows, also in programs that are too small for it."""
    vectors.FEWEST, rows.SHORTEST = (1, 8) if always else CHOSEN


def record(number: int) -> str:
    """Compares the compiled record of that number with the interpreter."""
    share(always=True)
    chosen = COMPILED[number]
    results = device().load_program(lowered(chosen, device().driver.target)).execute(*chosen.arrays)
    try:
        expect_equal(chosen, chosen.module(), results)
    except AssertionError as error:
        return f"{chosen}: {' '.join(str(error).split())[:300]}"
    return ""


def spirv(number: int) -> str:
    """Lets `spirv-val` judge the module of a record. Returns what it says."""
    dialect, facts = SpirV(), spirv_target()
    emitted = emit_program(lowered(COMPILED[number], facts), dialect, facts)
    if not emitted.work:
        return ""
    code = assembler().compile(emitted.text, dialect.assembling(facts))
    command = ["spirv-val", "--target-env", "spv1.4", "-"]
    done = subprocess.run(command, input=code, capture_output=True, check=False)
    report = " ".join((done.stderr + done.stdout).decode(errors="replace").split())
    return f"{COMPILED[number]}: {report[:300] or done.returncode}" if done.returncode else ""


MOST_REGISTERS = 128
"""Of 65536 registers, each thread of two blocks of 256 has as many."""

PROPERTIES = re.compile(
    r"Function properties for (\w+)\s+\d+ bytes stack frame, (\d+) bytes spill stores[^\n]*\n"
    r"ptxas info +: Used (\d+) registers(?:[^\n]*?(\d+) bytes smem)?"
)
"""What ptxas says of a kernel: its name, the bytes that it spills, its registers, and its shared memory."""


def ptx(item: tuple[str, int]) -> str:
    """Assembles the kernels of a record for an NVIDIA architecture. Returns a line for each: registers, bytes that
    are spilled, bytes of shared memory, and its name."""
    architecture, number = item
    dialect, facts = Nvptx(), target(architecture)
    emitted = emit_program(lowered(COMPILED[number], facts), dialect, facts)
    if not emitted.work:
        return ""
    code = assembler().compile(emitted.text, dialect.assembling(facts))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.ptx"
        file.write_bytes(code)
        command = ["ptxas", f"-arch={architecture}", "-v", str(file), "-o", f"{file}.cubin"]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "warning" not in report, report
    kernels = [
        f"{registers} {spilled} {shared or 0} {COMPILED[number]} {name}"
        for name, spilled, registers, shared in PROPERTIES.findall(report)
    ]
    assert kernels, f"ptxas says nothing that is understood: {report[:300]}"
    return "\n".join(kernels)


def code_object(item: tuple[str, int]) -> str:
    """The same for an AMD architecture, by LLVM, and by the linker, where there is one."""
    architecture, number = item
    facts = amdgcn.target(architecture)
    dialect = amdgcn.Amdgcn(facts.warp)
    emitted = emit_program(lowered(COMPILED[number], facts), dialect, facts)
    if not emitted.work:
        return ""
    code = assembler().compile(emitted.text, dialect.assembling(facts))
    kernels = code_objects.kernels(dialect.linked(code) if lld.installed() else code)
    return "\n".join(f"{one.registers} {one.spilled} {one.shared} {COMPILED[number]} {one.name}" for one in kernels)


def beyond_budget(kernels: str) -> list[str]:
    """Returns those of the lines of `ptx` or `code_object` whose kernels spill, or take too many registers."""
    figures = ((line, *map(int, line.split(" ", 2)[:2])) for line in kernels.splitlines())
    return [line for line, registers, spilled in figures if spilled or registers > MOST_REGISTERS]


def program(seed: int) -> str:
    """Compares the random program of a seed with the interpreter."""
    return _tried(random_program(seed), seed)


def neighbours(seed: int) -> str:
    """The same for a program whose kernels can share launches."""
    return _tried(program_of_neighbours(seed), seed)


def attention(seed: int) -> str:
    """The same for a program with attention of narrow numbers."""
    return _tried(program_of_attention(seed), seed)


def wide_attention(seed: int) -> str:
    """The same for a program with attention of f32, whose factors may be rounded to tf32."""
    return _tried(program_of_wide_attention(seed), seed, CompileOptions(tf32=True))


def products(seed: int) -> str:
    """The same for a program of products."""
    return _tried(program_of_products(seed), seed, CompileOptions(tf32=True))


def _tried(module: Module, seed: int, options: CompileOptions = DEFAULT) -> str:
    share(always=True)
    return judged(device(), module, seed, options)


def judged(client: GpuClient, module: Module, seed: int, options: CompileOptions = DEFAULT) -> str:
    """Compares what a device computes with the interpreter's results, within the bounds that follow from these."""
    arguments = arguments_of(module.main)
    try:
        expected = Tracker(options.tf32).main(module, arguments)
    except Unstable:
        return ""
    lowered_program = lower(pipeline.optimize(module), client.target(options))
    results = client.load_program(lowered_program, options).execute(*arguments)
    report = (difference(result, value) for result, value in zip(results, expected, strict=True))
    wrong = [f"result {index}: {text}" for index, text in enumerate(report) if text]
    return f"seed {seed}: {'; '.join(wrong)}" if wrong else ""


def vector(path: Path) -> str:
    """Runs the programs of a file, which check their own results: what some of them expect of cancelled sums depends on
    the order of the terms."""
    share(always=False)
    checks.register()
    for module, arrays in checked_programs(path):
        try:
            with np.errstate(all="ignore"):
                device().compile(module).execute(*arrays)
        except ExecutionError as error:
            return f"{path.stem}: {str(error)[:1500]}"
    return ""


# Tasks that end badly


def dies_once(path: str) -> str:
    """Ends its process the first time it is called."""
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(3)
    return ""


def dies(item: int) -> str:
    if item == 1:
        os._exit(3)
    if item == 2:
        raise ValueError("no")
    return ""


def does_not_end(item: int) -> str:
    threading.Event().wait()
    return ""


def process(item: int) -> str:
    """Returns the number of its process; the first item raises an error."""
    if not item:
        raise ValueError(str(os.getpid()))
    return str(os.getpid())
