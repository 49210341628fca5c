"""The CPU as a target: the facts of this processor, or of another one that is requested by name."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import asdict, dataclass, replace

import llvmlite.binding as llvm

from trivium.backends.cpu.contraction.tiling import ESTIMATED, Knobs
from trivium.backends.llvm.target import LlvmTarget
from trivium.compiler.artifact import Machine
from trivium.compiler.target import FusionLimits, LayoutCosts, MatrixInstruction, TileSizes
from trivium.ir.errors import Error

# Measurements show that on code that is already vectorized, level 1 is as fast as level 3.
CODE_GENERATION: dict[str, int | str] = {"opt": 1, "reloc": "pic", "codemodel": "default"}

FALSE_DEPENDENCIES = "+false-deps-range,+false-deps-perm"
"""Some processors let these instructions wait for the register that they overwrite, unless it was cleared before. LLVM
knows it of processors by their names, which hypervisors hide; on the others, clearing a register costs nothing."""

CACHE_LINE = 64

LIMITS = FusionLimits(
    # With more than about 32 streams, addresses spill, and the processor no longer prefetches each of them.
    reads=32,
    # 16 thousand elements take about 5 us, roughly the cost of waking threads.
    serial_row=1 << 14,
    # 256 KB of f32: half of the second-level cache of most processors.
    scratch_row=1 << 16,
    # One core's share of most last-level caches.
    scratch_bytes=1 << 22,
)

TILES = TileSizes(
    # Above this, memory is slower than computing in tiles, although smaller values leave a core's own cache, too.
    largest=1 << 22,
    # Stays in a core's own cache.
    tile=1 << 20,
    threads=4,
    rows=128,
)

AMX = {
    "amx-bf16": MatrixInstruction(16, 16, 32, "bf16", "f32", speed=8),
    "amx-int8": MatrixInstruction(16, 16, 64, "i8", "i32", speed=8),
}
"""Instructions that multiply tiles, by LLVM's names of the features. Those of bytes take them with and without sign."""

VNNI, AVX_VNNI = (MatrixInstruction(1, lanes, 4, "i8", "i32", speed=3) for lanes in (16, 8))
PAIRS = MatrixInstruction(1, 16, 2, "bf16", "f32", speed=2)
"""Products of four bytes, of AVX-512 and of AVX, and AVX-512's of two numbers of bf16, in each lane."""


def words(vector_bytes: int) -> MatrixInstruction:
    """Returns x86's instruction for products of two numbers of 16 bits in each lane of vectors of a size."""
    return MatrixInstruction(1, vector_bytes // 4, 2, "i8", "i32", speed=2, widens=True)


# Fitted to 3x3 convolutions of 64 x 56 x 56 to 512 x 7 x 7 elements.
LAYOUTS = LayoutCosts(windows=4.0, squares=6.0, rows=2.0)


@dataclass(frozen=True)
class Level:
    """A kind of processor that programs can be compiled for by name, whatever machine compiles them. `features`: what
    it needs, in LLVM's names; `cpu`: LLVM's name for it; the other facts are those of `CpuTarget`."""

    triple: str
    cpu: str
    features: str
    vector_bytes: int
    vector_registers: int
    fma: bool
    half: bool
    ldexp: bool = False
    orders_zeros: bool = False
    looks_up: int = 0
    sorts_keys: bool = False
    wide_products: bool = False
    masks_apart: bool = False


LINUX_X86, LINUX_ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
SSE = "+cx16,+sahf,+popcnt,+sse3,+ssse3,+sse4.1,+sse4.2"
AVX2 = f"{SSE},+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+xsave"
AVX512 = f"{AVX2},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
AVX2_FACTS = {"fma": True, "half": True, "sorts_keys": True, "wide_products": True}
AVX512_FACTS = {"ldexp": True, "orders_zeros": True, "masks_apart": True}
TABLES = {64: 16, 32: 8}
"""How many numbers of f32 a table has, by the bytes of a vector."""

LEVELS = {
    "x86-64-v2": Level(LINUX_X86, "x86-64-v2", SSE, 16, 16, fma=False, half=False),
    "x86-64-v3": Level(LINUX_X86, "x86-64-v3", AVX2, 32, 16, looks_up=TABLES[32], **AVX2_FACTS),
    "x86-64-v4": Level(LINUX_X86, "x86-64-v4", AVX512, 64, 32, looks_up=TABLES[64], **AVX2_FACTS, **AVX512_FACTS),
    "aarch64": Level(LINUX_ARM, "generic", "+fp-armv8,+neon", 16, 32, fma=True, half=True),
}
"""The x86-64 psABI's levels (SSE 4.2, AVX2, AVX-512), and Armv8-A with Neon, which every 64-bit Arm processor has."""


@dataclass(frozen=True, kw_only=True)
class CpuTarget(LlvmTarget):
    """A processor."""

    divides_integers_in_lanes: bool = False
    scans: bool = True
    # A nominal second-level cache; hardly any recent processor has less.
    cache_bytes: tuple[int, ...] = (32 << 10, 1 << 20)
    alignment: int = CACHE_LINE
    donation: bool = True
    sections: bool = True
    loops_in_order: bool = True
    # The cost of a call.
    launch_cost: float = 10.0
    # About 5 us: threads that are awake, because an earlier kernel woke them, take part within 0.5.
    split_cost: float = 16_000.0
    # About 18 us: waking a sleeping thread takes 5 to 20.
    wake_cost: float = 60_000.0
    piece_cost: float = 5_000.0
    # About a core's own caches: in larger arrays, rows at computed places are requested before they are used.
    prefetch_bytes: int = 1 << 20
    # Two units, one cycle each.
    multiply_adds: int = 2
    # One store, one load, and the loop around them.
    recompute_cost: float = 4.0
    fusion: FusionLimits = LIMITS
    tiles: TileSizes | None = TILES
    layouts: LayoutCosts | None = LAYOUTS
    tuned: tuple[tuple[str, Knobs], ...] = ()
    """The knobs of contractions that were measured, by the digests of their kernels."""

    def tuned_knobs(self, digest: str) -> Knobs:
        """Returns the knobs that were the fastest for a kernel, or those of the estimates."""
        return dict(self.tuned).get(digest, ESTIMATED)

    @property
    def tuned_features(self) -> str:
        """Returns the features, and which properties of processors code generation takes into account."""
        return f"{self.features},{FALSE_DEPENDENCIES}" if self.orders_zeros else self.features

    @property
    def code_generation(self) -> dict[str, int | str]:
        """The options of LLVM's code generator."""
        return CODE_GENERATION

    def machine(self) -> llvm.TargetMachine:
        """Returns LLVM's code generator. It is kept, because its tables take longer to make than the code of a small
        program; llvmlite lets one thread use it at a time."""
        return _kept_code_generator(self.triple, self.cpu, self.tuned_features, **self.code_generation)

    def new_machine(self) -> llvm.TargetMachine:
        """Returns another code generator, which a thread has for itself."""
        return _code_generator(self.triple, self.cpu, self.tuned_features, **self.code_generation)


def _code_generator(triple: str, cpu: str, features: str, **options: int | str) -> llvm.TargetMachine:
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, **options)


_kept_code_generator = functools.cache(_code_generator)


def machine_of(target: CpuTarget) -> Machine:
    """A description of the machine that code for a target runs on."""
    return Machine(target.triple, target.cpu, target.features)


@functools.cache
def host() -> CpuTarget:
    """Returns the processor that this process runs on, with one thread."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    x86 = triple.startswith(("x86_64", "i686"))
    if features.get("amx-tile") and not _may_use_tiles():
        features.update((name, False) for name in features if name.startswith("amx-"))
    vector_bytes = 64 if features.get("avx512f") else 32 if features.get("avx2") else 16
    return CpuTarget(
        triple=triple,
        cpu=llvm.get_host_cpu_name(),
        features=features.flatten(),
        vector_bytes=vector_bytes,
        # AVX-512 and the RISC architectures have 32, older x86 has 16.
        vector_registers=16 if x86 and vector_bytes < 64 else 32,
        fma=bool(features.get("fma")) if x86 else True,
        half=bool(features.get("f16c")) if x86 else True,
        ldexp=x86 and bool(features.get("avx512dq")),
        orders_zeros=x86 and bool(features.get("avx512dq") and features.get("avx512vl")),
        looks_up=TABLES.get(vector_bytes, 0) if x86 and features.get("fma") else 0,
        sorts_keys=x86 and vector_bytes > 16,
        ends=True,
        wide_products=x86 and vector_bytes > 16,
        masks_apart=x86 and vector_bytes == 64,
        matrix_instructions=(
            *(one for name, one in AMX.items() if features.get(name)),
            *((VNNI,) if features.get("avx512vnni") and features.get("avx512bw") else ()),
            *((AVX_VNNI,) if features.get("avxvnni") and vector_bytes == 32 else ()),
            *((words(vector_bytes),) if x86 and (vector_bytes < 64 or features.get("avx512bw")) else ()),
            # Intel's processors multiply vectors of f32 twice as fast; only AMD's have SSE4a.
            *((PAIRS,) if all(map(features.get, ("avx512bf16", "avx512bw", "sse4a"))) else ()),
        ),
    )


def _may_use_tiles() -> bool:
    """Asks Linux to let this process use AMX's tile registers, which it saves only for processes that ask. The native
    runtime does the same when it loads code that needs them."""
    request, permission, tile_data = 158, 0x1023, 18  # arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return ctypes.CDLL(None).syscall(request, permission, tile_data) == 0


def level(name: str) -> CpuTarget:
    """Returns a processor of one of `LEVELS`, with no features beyond it and one thread."""
    if name not in LEVELS:
        raise Error(f"unknown target {name!r}, expected one of {', '.join(LEVELS)}")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    found = CpuTarget(**asdict(LEVELS[name]))
    return replace(found, matrix_instructions=(words(found.vector_bytes),) if LEVELS[name].triple == LINUX_X86 else ())


def emulated(name: str) -> CpuTarget:
    """Returns `level`, but with this processor's instructions: LLVM splits the vectors that are too wide for it. Code
    that is planned for another processor thus runs here."""
    here, described = host(), level(name)
    facts: dict[str, object] = {"fma": here.fma, "half": here.half, "ldexp": here.ldexp}
    if (
        described.vector_bytes > here.vector_bytes
        or described.triple.partition("-")[0] != here.triple.partition("-")[0]
    ):
        facts["matrix_instructions"] = ()
    shared = ("orders_zeros", "looks_up", "sorts_keys", "wide_products")
    facts |= {name: min(getattr(here, name), getattr(described, name)) for name in shared}
    return replace(described, triple=here.triple, cpu=here.cpu, features=here.features, **facts)
