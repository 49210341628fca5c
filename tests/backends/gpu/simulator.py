"""A simulated NVIDIA GPU: modules for NVIDIA's driver run on the host, behind a fake driver (`fake_cuda.cc`). LLVM
compiles the same text for this CPU, with functions of `simulator.cc` in place of NVIDIA's intrinsics. This tests the
kernels and `cuda.py`, but neither LLVM's code generator for NVIDIA, nor speed."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from trivium.backends.cpu.target import host
from trivium.backends.gpu import cuda_library, cuda_memory
from trivium.backends.gpu.assembler import Assembler
from trivium.backends.gpu.cuda import Cuda
from trivium.backends.gpu.dialect import MAP_ATTRIBUTES, Assembling
from trivium.backends.llvm.shared_object import link

NAME = "libtrivium-fake-cuda.so"
OPTIONS = ("-std=c++20", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror")

INTRINSICS = {
    "read.ptx.sreg.tid.x": "sim_thread",
    "read.ptx.sreg.ctaid.x": "sim_block",
    "barrier.cta.sync.aligned.all": "sim_barrier",
    "barrier.cta.sync.aligned.count": "sim_partial_barrier",
    "bar.warp.sync": "sim_warp_barrier",
    "shfl.sync.down.i32": "sim_shuffle_down",
    "shfl.sync.up.i32": "sim_shuffle_up",
    "shfl.sync.bfly.i32": "sim_shuffle_exchange",
    "shfl.sync.idx.i32": "sim_shuffle_index",
}
"""The simulator's functions, with the same operands."""

WORDS = {
    "cp.async.cg.shared.global.16.s": ("sim_copy_async", 16),
    "cp.async.ca.shared.global.4.s": ("sim_copy_async", 4),
    "cp.async.commit.group": ("sim_commit", 0),
    "cp.async.wait.group": ("sim_wait", 0),
    "ldmatrix.sync.aligned.m8n8.x4.b16.p3": ("sim_load_matrix", 0),
    "ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3": ("sim_load_matrix", 1),
    "f2tf32.rna": ("sim_round", 0),
    "ff2bf16x2.rn": ("sim_pack", 0),
    "ff2f16x2.rn": ("sim_pack", 1),
    "ex2.approx.ftz.f": ("sim_power_of_two", 0),
    "mma.m16n8k16.row.col.bf16": ("sim_multiply_add", 0),
    "mma.m16n8k16.row.col.f32.f32": ("sim_multiply_add", 1),
    "mma.m16n8k8.row.col.tf32": ("sim_multiply_add", 2),
    "mma.m16n8k32.row.col.s8": ("sim_multiply_add", 3),
    "mma.m16n8k32.row.col.u8": ("sim_multiply_add", 4),
}
"""The simulator's functions that take their operands, as words of 64 bits, and their results by address; and a number
that distinguishes those of one function."""

ASSEMBLY = {
    r"fence\.proxy\.async\.shared::cta": ("sim_publish", lambda match, sums: 0),
    r"wgmma\.fence\.sync\.aligned": ("sim_begin_products", lambda match, sums: sums),
    r"wgmma\.commit_group\.sync\.aligned": ("sim_commit_products", lambda match, sums: 0),
    r"wgmma\.wait_group\.sync\.aligned (\d+)": ("sim_end_products", lambda match, sums: int(match[1]) | sums << 8),
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.(f32|s32)\.(\w+)\.(\w+) \{(.*?)\}, (.*?\$\d+), 1(.*)": (
        "sim_multiply",
        lambda match, sums: _product(match, sums),
    ),
    r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32 (\d+)": (
        "sim_registers",
        lambda match, sums: int(match[2]) | (match[1] == "inc") << 16,
    ),
    r"mbarrier\.init\.shared::cta\.b64 \[\$0\], (\d+)": ("sim_start_count", lambda match, sums: int(match[1])),
    r"mbarrier\.arrive\.shared::cta\.b64 _, \[\$0\]": ("sim_arrive", lambda match, sums: 0),
    r"mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[\$0\], \$1": ("sim_expect", lambda match, sums: 0),
    r"cp\.async\.bulk\.tensor\.(\d)d\.shared::cluster\.global\.(tile|im2col)\.mbarrier::complete_tx::bytes "
    r"\[\$0\], \[\$1, \{(.*?)\}\], \[\$(\d)\](?:, \{(.*)\})?": ("sim_copy_box", lambda match, sums: _box(match)),
    r"\{ \.reg \.pred done; (again_\$\{:uid\}): mbarrier\.try_wait\.parity\.shared::cta\.b64 done, \[\$0\], \$1; "
    r"@!done bra \1; \}": ("sim_wait_for_phase", lambda match, sums: 0),
}
"""The same for instructions that are written as assembly: a number from the operands in the text, and the number of
sums, which they change in registers."""

FACTORS = {
    ("16", "f32", "bf16"): (0, r", 1, 1, ([01]), ([01])"),
    ("16", "f32", "f16"): (1, r", 1, 1, ([01]), ([01])"),
    ("8", "f32", "tf32"): (2, ", 1, 1"),
    ("32", "s32", "s8"): (3, ""),
    ("32", "s32", "u8"): (4, ""),
}
"""For the depth and the types of a matrix instruction that four warps share: the simulator's number for the type, and
the last operands."""

WORD = """define internal {result} @"word.{name}"({parameters}) {{
  %in = alloca [264 x i64]
  %out = alloca [256 x i32]
{stores}
  call void @{function}(i32 {kind}, ptr %in, ptr %out)
{end}
}}"""

ENTER = """
@"parameters.{name}" = constant i32 {count}
{maps}
define void @"enter.{name}"(ptr %table) {{
{loads}
{window}
  call void @"{name}"({arguments})
  ret void
}}"""

LOAD = """  %p{n} = getelementptr ptr, ptr %table, i32 {n}
  %q{n} = load ptr, ptr %p{n}
  %a{n} = load ptr addrspace(1), ptr %q{n}"""

LOAD_MAP = """  %p{n} = getelementptr ptr, ptr %table, i32 {n}
  %a{n} = load ptr, ptr %p{n}"""


def compiler() -> str | None:
    """Returns the compiler of C++ that builds the simulator."""
    return shutil.which(os.environ.get("CXX", "g++"))


needs_simulator = pytest.mark.skipif(compiler() is None, reason="no compiler of C++ builds the simulator")

LeaveOut = Callable[[int], Iterator[int]]
"""The fixture `leave_out_barrier`."""


@functools.cache
def built(name: str = NAME, driver: str = "fake_cuda.cc", more: tuple[str, ...] = ()) -> Path:
    """Returns a fake driver's library, which is built when its sources have changed."""
    here = Path(__file__).parent
    options = *OPTIONS, *more, f"-Wl,-soname,{name}"
    sources = b"".join(path.read_bytes() for kind in ("*.h", "*.cc") for path in sorted(here.glob(kind)))
    digest = hashlib.sha256(repr(options).encode() + sources).hexdigest()
    folder = Path(tempfile.gettempdir()) / f"trivium-simulator-{os.getuid()}-{digest[:16]}"
    library = folder / name
    if not library.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as own:
            made = Path(own, name)
            inputs = [str(here / source) for source in ("simulator.cc", "warpgroup.cc", "bulk.cc", driver)]
            subprocess.run([compiler() or "g++", *options, *inputs, "-o", str(made)], check=True)
            made.rename(library)
    return library


@functools.cache
def fake() -> ctypes.CDLL:
    """Returns the library's functions for tests."""
    library = declared(built())
    library.fake_capability.argtypes = ctypes.c_int, ctypes.c_int
    return library


def declared(path: Path) -> ctypes.CDLL:
    """Returns the functions of a fake driver that are for tests."""
    library = ctypes.CDLL(str(path))
    library.fake_reset.argtypes = ctypes.c_long, ctypes.c_int
    library.fake_fail.argtypes = ctypes.c_char_p, ctypes.c_int
    library.fake_total.argtypes = (ctypes.c_size_t,)
    library.fake_elsewhere.argtypes = (ctypes.c_bool,)
    library.fake_seed.argtypes = (ctypes.c_uint64,)
    library.fake_calls.restype = library.fake_live.restype = ctypes.c_long
    library.fake_log.restype = library.fake_wrong.restype = ctypes.c_char_p
    return library


@contextmanager
def on_this_processor(compiled: Callable[[str, Assembling], bytes]) -> Iterator[None]:
    """Lets the assembler compile for the host. The cache, which is also that of devices, keeps nothing of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Assembler, "compile", lambda self, text, how: compiled(text, how))
        patch.setenv("TRIVIUM_CACHE", "0")
        yield


@contextmanager
def simulated() -> Iterator[None]:
    """Lets the driver's library be the fake one, and the assembler compile for the host."""
    name = cuda_library.NAME
    cuda_library.NAME = str(built())
    cuda_library.library.cache_clear()
    try:
        with on_this_processor(for_the_host):
            yield
    finally:
        cuda_library.NAME = name
        cuda_library.library.cache_clear()


@contextmanager
def fresh_memory() -> Iterator[None]:
    """Gives all memory back to the fake driver, which fills it. A kernel that leaves out results could otherwise find
    those of an earlier run where they belong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_memory, "MOST_SPARE", 0)
        yield


@contextmanager
def opened(number: int = 0) -> Iterator[Cuda]:
    """Opens a simulated device, and closes it."""
    with simulated(), fresh_memory():
        device = Cuda(number)
        try:
            yield device
        finally:
            device.close()


def for_the_host(text: str, how: Assembling) -> bytes:
    """Stands for the assembler: returns a shared object for this processor."""
    assert how.text
    module = llvm.parse_assembly(on_the_host(text))
    module.verify()
    return link([quick_machine().emit_object(module)], [NAME])


@functools.cache
def quick_machine() -> llvm.TargetMachine:
    """Returns a code generator for this processor that saves its own time: the code that it makes runs only once."""
    here = host()
    options = {**here.code_generation, "opt": 0}
    return llvm.Target.from_triple(here.triple).create_target_machine(here.cpu, here.tuned_features, **options)


GRANTED = '@"granted" = internal addrspace(3) global [232448 x i8] zeroinitializer, align 1024'
"""The memory that launches grant blocks: for the simulator, which runs one block at a time, always the same."""


def on_the_host(text: str) -> str:
    """Returns an NVIDIA module as one of the host's, with a function that the simulator calls for each kernel."""
    text = re.sub(r"^target .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r'"nvvm\.\w+"="\d+"', "", text.replace("ptx_kernel ", "").replace(MAP_ATTRIBUTES, ""))
    text, has_window = _with_window(text)
    text = _without_assembly(text)
    text = re.sub(r'^declare (.*?) @"llvm\.nvvm\.([^"]+)"\((.*?)\)[^()\n]*$', _word, text, flags=re.MULTILINE)
    functions = sorted({function for function, _ in (*WORDS.values(), *ASSEMBLY.values())})
    text += "".join(f"\ndeclare void @{function}(i32, ptr, ptr)" for function in functions) + "\n"
    for name in WORDS:
        text = text.replace(f'@"llvm.nvvm.{name}"', f'@"word.{name}"')
    for name, function in INTRINSICS.items():
        text = text.replace(f'@"llvm.nvvm.{name}"', f"@{function}")
    return entered(text, has_window)


def entered(text: str, has_window: bool = False) -> str:
    """Returns a module with what the simulator needs beside intrinsics: pauses, and the entries of kernels."""
    # A thread that stores what follows from a load must be the only one: another one may come in between.
    text = re.sub(r"^(  store .*, ptr addrspace\(1\) )", r"  call void @sim_pause()\n\1", text, flags=re.MULTILINE)
    text += "\ndeclare void @sim_pause()\n"
    listed = text.replace("ptr addrspace(1)", "pointer")
    kernels = re.findall(r'^define void @"(k\d+_\w*)"\((.*?)\)', listed, re.MULTILINE)
    counts = ((name, parameters.count("pointer"), parameters.count("ptr")) for name, parameters in kernels)
    return "\n".join([text, *(_entry(*found, has_window) for found in counts)])


def _with_window(text: str) -> tuple[str, bool]:
    """Gives the memory that launches grant a place, and lets each thread tell what it writes to shared memory. Returns
    whether there is such memory."""
    external = r'^@"([^"]+)" = external addrspace\(3\) global .*$'
    names = re.findall(external, text, re.MULTILINE)
    text = re.sub(external, "", text, flags=re.MULTILINE)
    for name in names:
        text = text.replace(f'@"{name}"', '@"granted"')
    if not names:
        return text, False
    stored = r"^(  store (.+) \S+, (ptr addrspace\(3\) [^,\n]+).*)$"
    wrote = r"\1\n  call void @sim_wrote(\3, i64 ptrtoint (ptr getelementptr (\2, ptr null, i64 1) to i64))"
    text = re.sub(stored, wrote, text, flags=re.MULTILINE)
    declared = "declare void @sim_window(ptr addrspace(3))", "declare void @sim_wrote(ptr addrspace(3), i64)"
    return "\n".join((text, GRANTED, *declared)), True


def _without_assembly(text: str) -> str:
    """Replaces instructions that are written as assembly by calls of functions."""
    made: dict[tuple[str, str, str], str] = {}

    def call(match: re.Match[str]) -> str:
        result, assembly, _, operands = match.groups()
        types = ", ".join(one.strip().rsplit(" ", 1)[0] for one in operands.split(",") if one)
        name = made.setdefault((result, assembly, types), f"assembly.{len(made)}")
        return f'call {result} @"word.{name}"({operands})'

    pattern = r'call (\S.*?) asm sideeffect "(.*?);?", "(.*?)"\s*\(((?:[^()]|\([^()]*\))*)\)(?: convergent)?'
    text = re.sub(pattern, call, text)
    defined = []
    for (result, assembly, types), name in made.items():
        (function, kind), match = next(
            (found, match) for form, found in ASSEMBLY.items() if (match := re.fullmatch(form, assembly))
        )
        number = kind(match, 0 if result == "void" else result.count(",") + 1)
        defined.append(_defined(result, name, types.split(", ") if types else [], function, number))
    return "\n".join((text, *defined))


def _product(match: re.Match[str], sums: int) -> int:
    """Returns the number that describes a matrix instruction which four warps share."""
    columns, depth, total, lhs, rhs, registers, factors, rest = match.groups()
    kind, modifiers = FACTORS[depth, total, lhs]
    held = factors.startswith("{")
    # A left factor in registers is not transposed.
    across = re.fullmatch(modifiers.replace(", ([01])", "", 1) if held else modifiers, rest)
    assert across, f"unknown operands of wgmma: {rest}"
    assert lhs == rhs
    assert 2 * sums == int(columns)
    assert registers == ", ".join(f"${number}" for number in range(sums))
    places = [f"${number}" for number in range(sums, sums + (5 if held else 2))]
    assert factors == (f"{{{', '.join(places[:4])}}}, {places[4]}" if held else ", ".join(places))
    transposed = [int(one) << number + held for number, one in enumerate(across.groups())]
    return int(columns) | kind << 12 | sum(transposed) << 16 | held << 18


def _box(match: re.Match[str]) -> int:
    """Returns the number of dimensions of a box, or, with 8 added, of an image whose windows are copied."""
    rank, mode, places, count, taps = match.groups()
    last = 2 + int(rank)
    assert places == ", ".join(f"${number}" for number in range(2, last))
    assert int(count) == last
    if mode == "tile":
        assert taps is None
        return int(rank)
    assert taps == ", ".join(f"${number}" for number in range(last + 1, last + int(rank) - 1))
    return int(rank) | 8


def _word(declared: re.Match[str]) -> str:
    """Returns the definition of an intrinsic that a function of the simulator stands for."""
    result, name, listed = declared.groups()
    if name not in WORDS:
        return declared[0]
    types = [one.strip().rsplit(" ", 1)[0] for one in listed.split(",") if one]
    return _defined(result, name, types, *WORDS[name])


def _defined(result: str, name: str, types: Sequence[str], function: str, kind: int) -> str:
    """Returns the definition of a word: its operands go to a function of the simulator, from which its result comes."""
    places = [f"  %p{n} = getelementptr i64, ptr %in, i32 {n}" for n in range(len(types))]
    stores = [f"  store {type_} %a{n}, ptr %p{n}" for n, type_ in enumerate(types)]
    return WORD.format(
        result=result,
        name=name,
        parameters=", ".join(f"{type_} %a{n}" for n, type_ in enumerate(types)),
        stores="\n".join((*places, *stores)),
        function=function,
        kind=kind,
        end="  ret void" if result == "void" else f"  %r = load {result}, ptr %out\n  ret {result} %r",
    )


def _entry(name: str, count: int, maps: int, has_window: bool) -> str:
    kinds = [*["ptr addrspace(1)"] * count, *["ptr"] * maps]
    loads = "\n".join((LOAD if n < count else LOAD_MAP).format(n=n) for n in range(count + maps))
    arguments = ", ".join(f"{kind} %a{n}" for n, kind in enumerate(kinds))
    window = '  call void @sim_window(ptr addrspace(3) @"granted")' if has_window else ""
    constants = f'@"maps.{name}" = constant i32 {maps}' if maps else ""
    return ENTER.format(name=name, count=count, maps=constants, loads=loads, arguments=arguments, window=window)
