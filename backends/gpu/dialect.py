"""The interface of a GPU's dialect: what GPU code needs in addition to `backends/llvm`, such as the signature of a
kernel, and the indices of threads and blocks. Every kind of device has a small class that implements it with LLVM's
intrinsics for that device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.ir as ll

from trivium.backends.gpu.target import GpuTarget
from trivium.backends.llvm.code import I8, Code
from trivium.compiler.target import MatrixInstruction

GLOBAL = 1
"""The address space of memory that all threads see. NVPTX, AMDGPU and SPIR-V use the same number."""

SHARED, SHARED_ALIGNMENT = 3, 16
"""The address space of memory that the threads of a block share, and the alignment of what is there."""

WARP, WARPGROUP = 32, 128
"""The numbers of threads that share a matrix instruction: one warp, or four of them."""

STATIC_MEMORY = 48 << 10
"""The most bytes that the threads of a block share without being granted them at the launch."""

GLOBAL_POINTER, SHARED_POINTER = ll.PointerType(addrspace=GLOBAL), ll.PointerType(addrspace=SHARED)

MAP_POINTER, MAP_ATTRIBUTES = ll.PointerType(), 'byval([128 x i8]) align 64 "nvvm.grid_constant"'
"""The description of an array, from which the device itself copies, as a parameter of a kernel: it stays where the
launch has put it."""


class Entry(ll.Function):
    """A kernel. `granted`: the bytes of the block's memory that a launch has to grant."""

    granted: int = 0


class Body(ll.Function):
    """A function that does the work of one block of a kernel: `void name(ptr, ..., map, ..., i32, ptr)`, with the
    number of the block and its memory, for launches that several kernels share. `nbytes`: how much of that memory it
    uses, which begins at a multiple of `alignment`."""

    nbytes: int = 0
    alignment: int = SHARED_ALIGNMENT

    resident: int = 0
    """The number of blocks that a multiprocessor must be able to run at the same time; 0 if any number will do."""

    def room(self, builder: ll.IRBuilder, nbytes: int, alignment: int) -> ll.Value:
        """Returns memory of the block."""
        begin = -(-self.nbytes // alignment) * alignment
        self.nbytes, self.alignment = begin + nbytes, max(alignment, self.alignment)
        return builder.gep(self.args[-1], [ll.Constant(ll.IntType(64), begin)], source_etype=I8)


@dataclass(frozen=True)
class Assembling:
    """How LLVM makes a device's code from a module: the code generator, and whether its result is text."""

    triple: str
    cpu: str
    features: str
    optimization: int
    text: bool


class Dialect(ABC):
    """The words of one kind of device."""

    convention: str
    """The calling convention of kernels."""

    inner_convention: str = ""
    """That of functions that kernels call."""

    optimization: int
    """LLVM's level of code generation."""

    shuffles: int = 1
    """The number of threads that exchange words without memory, where that is known."""

    makes_text: bool = False
    """Whether the device's driver takes assembly, as text."""

    def define(self, module: ll.Module, name: str, pointers: int, threads: int, maps: int = 0) -> Entry:
        """Defines the kernel `void name(ptr, ..., ptr, map, ..., map)`, which runs in blocks of `threads` threads."""
        kinds = [*[GLOBAL_POINTER] * pointers, *[MAP_POINTER] * maps]
        function = Entry(module, ll.FunctionType(ll.VoidType(), kinds), name)
        for argument in function.args[pointers:]:
            # llvmlite's set refuses what it does not know.
            set.add(argument.attributes, MAP_ATTRIBUTES)
        function.calling_convention = self.convention
        function.attributes.add("nounwind")
        self.limit(function, threads)
        return function

    def body(self, module: ll.Module, name: str, pointers: int, maps: int = 0) -> Body:
        """Defines a function that does the work of one block."""
        kinds = [*[GLOBAL_POINTER] * pointers, *[MAP_POINTER] * maps, ll.IntType(32), SHARED_POINTER]
        kind = ll.FunctionType(ll.VoidType(), kinds)
        function = Body(module, kind, name)
        function.linkage, function.calling_convention = "internal", self.inner_convention
        for attribute in ("nounwind", "alwaysinline", "convergent"):
            function.attributes.add(attribute)
        return function

    @abstractmethod
    def limit(self, function: ll.Function, threads: int) -> None:
        """Records the number of threads of a kernel's blocks."""

    @abstractmethod
    def thread(self, code: Code) -> ll.Value:
        """Returns the thread's number in its block, an i32."""

    def block(self, code: Code) -> ll.Value:
        """Returns the block's number among those of its kernel, an i32."""
        function = code.builder.function
        return function.args[-2] if isinstance(function, Body) else self.grid_block(code)

    @abstractmethod
    def grid_block(self, code: Code) -> ll.Value:
        """Returns the block's number among those of the launch, an i32."""

    @abstractmethod
    def barrier(self, code: Code) -> None:
        """Waits until all threads of the block are here, and see what the others have written before."""

    def fence(self, code: Code) -> None:
        """Orders what this thread has written and seen before what it does next, for all threads of the device."""
        code.builder.fence("acq_rel", targetscope="device")

    def shuffled(self, code: Code, word: ll.Value, lanes: int | None) -> ll.Value:
        """Returns the i32 of the thread whose number is greater by `lanes`, which may be negative, or else that of the
        first thread, of those that exchange words; if there is none, some number. All of them must call it. Dialects
        without `shuffles` are never asked."""
        raise NotImplementedError

    # Words of dialects whose targets have matrix instructions

    def resident(self, code: Code, blocks: int) -> None:
        """Says how many blocks of the kernel a processor shall have room for: a thread has as many registers as that
        leaves."""
        raise NotImplementedError

    def exchanged(self, code: Code, word: ll.Value, lanes: int) -> ll.Value:
        """Returns the i32 of the thread of the warp whose number differs in the bits `lanes`. All of them must call
        it."""
        raise NotImplementedError

    def warp_barrier(self, code: Code) -> None:
        """Waits until all threads of the warp are here, and see what the others have written before."""
        raise NotImplementedError

    def copy_async(self, code: Code, target: ll.Value, source: ll.Value, nbytes: ll.Value, size: int = 16) -> None:
        """Begins to copy `size` bytes, 4 or 16, to shared memory: `nbytes` from global memory, then zeros."""
        raise NotImplementedError

    def commit(self, code: Code) -> None:
        """Ends a group of this thread's copies."""
        raise NotImplementedError

    def wait(self, code: Code, groups: int) -> None:
        """Waits until all groups of this thread's copies are done, except for the last ones."""
        raise NotImplementedError

    def load_matrix(self, code: Code, pointer: ll.Value, transposed: bool) -> list[ll.Value]:
        """Returns this thread's words of four matrices of 8 lines of 16 bytes, to which the threads of a warp point,
        eight of them for each; `transposed`: of the matrices of their 16-bit elements, transposed."""
        raise NotImplementedError

    def multiply_add(
        self,
        code: Code,
        instruction: MatrixInstruction,
        lhs: Sequence[ll.Value],
        rhs: Sequence[ll.Value],
        sums: Sequence[ll.Value],
    ) -> list[ll.Value]:
        """Returns this thread's sums after the product of a warp's matrices."""
        raise NotImplementedError

    def rounded_to_tf32(self, code: Code, word: ll.Value) -> ll.Value:
        """Returns an f32, as an i32, rounded to 10 bits of mantissa."""
        raise NotImplementedError

    def packed(self, code: Code, dtype: str, low: ll.Value, high: ll.Value) -> ll.Value:
        """Returns the i32 of two f32, each rounded to 16 bits."""
        raise NotImplementedError

    def power_of_two(self, code: Code, exponent: ll.Value) -> ll.Value:
        """Returns a power of two in f32, whose relative error is at most 2^-22; zero if it is less than 2^-126."""
        raise NotImplementedError

    # Words of dialects whose targets have matrix instructions that four warps share. Their matrices are in shared
    # memory, their sums in registers. These instructions run beside the threads, which must not touch the sums
    # between the beginning of the products and their end.

    def publish(self, code: Code) -> None:
        """Lets matrix instructions see what this thread has written to shared memory, once it has met the others."""
        raise NotImplementedError

    def matrix(self, code: Code, pointer: ll.Value, lead: int, stride: int) -> ll.Value:
        """Returns the description of a matrix in shared memory, of squares of 8 lines of 128 bytes each, in which the
        number of a line is added, bit by bit, to that of each 16 bytes. `stride`: the bytes from one square to the
        next across its lines, `lead`: along them."""
        raise NotImplementedError

    def begin_products(self, code: Code, sums: Sequence[ll.Value]) -> list[ll.Value]:
        """Returns this thread's sums, in registers that matrix instructions may change from then on."""
        raise NotImplementedError

    def multiply_shared(
        self,
        code: Code,
        instruction: MatrixInstruction,
        lhs: ll.Value | Sequence[ll.Value],
        rhs: ll.Value,
        across: tuple[bool, bool],
        sums: Sequence[ll.Value],
    ) -> list[ll.Value]:
        """Begins to multiply two matrices, and returns what will be this thread's sums; `across`: whether the lines of
        each matrix run along its own dimension, not along the depth. Instead of the description of the left one, there
        may be this thread's four words of it, like those of `multiply_add`, in registers as `begin_products` returns
        them."""
        raise NotImplementedError

    def commit_products(self, code: Code) -> None:
        """Ends a group of products."""
        raise NotImplementedError

    def end_products(self, code: Code, sums: Sequence[ll.Value], groups: int = 0) -> list[ll.Value]:
        """Waits until all groups of products are done, except for the last ones, and returns this thread's sums."""
        raise NotImplementedError

    # Words of dialects whose targets copy boxes of arrays by themselves. Threads and bytes that arrive are counted in
    # words of 8 bytes in shared memory (`mbarrier`), by phases: one ends when all threads have arrived, and as many
    # bytes as they expect.

    def start_count(self, code: Code, count: ll.Value, threads: int = 1) -> None:
        """Initializes a word, which counts once it is published. `threads` threads arrive in each phase."""
        raise NotImplementedError

    def arrive(self, code: Code, count: ll.Value) -> None:
        """Says that this thread has arrived, with all that it has done before."""
        raise NotImplementedError

    def expect(self, code: Code, count: ll.Value, nbytes: int) -> None:
        """Does the same, and says how many bytes arrive in this phase."""
        raise NotImplementedError

    def copy_box(
        self, code: Code, target: ll.Value, array: ll.Value, place: Sequence[ll.Value], count: ll.Value
    ) -> None:
        """Begins to copy the box of an array that begins at a place, the innermost dimension first, to shared memory,
        for all threads; matrix instructions see it without a fence."""
        raise NotImplementedError

    def copy_windows(
        self,
        code: Code,
        target: ll.Value,
        array: ll.Value,
        place: Sequence[ll.Value],
        taps: Sequence[ll.Value],
        count: ll.Value,
    ) -> None:
        """Does the same for an element of each of the windows of an image from `place` on. `taps`: how far it is from
        where its window begins, along each spatial dimension, as words of 16 bits."""
        raise NotImplementedError

    def wait_for_phase(self, code: Code, count: ll.Value, phase: ll.Value) -> None:
        """Waits until a phase has ended: the last bit of its number is `phase`. Before the first one, which has the
        number 0, one with the bit 1 has ended."""
        raise NotImplementedError

    # Words for blocks in which some warps only copy

    def take_registers(self, code: Code, count: int) -> None:
        """Gives each thread of four warps more registers, `count` of them, once others have left theirs."""
        raise NotImplementedError

    def leave_registers(self, code: Code, count: int) -> None:
        """Leaves each thread of four warps only `count` registers."""
        raise NotImplementedError

    def partial_barrier(self, code: Code, threads: int) -> None:
        """A barrier of `threads` threads of the block, which are always the same ones."""
        raise NotImplementedError

    # Memory of the block

    def shared(self, code: Code, nbytes: int, alignment: int = SHARED_ALIGNMENT) -> ll.Value:
        """Returns memory of the block, whose contents are undefined."""
        module, function = code.builder.module, code.builder.function
        if isinstance(function, Body):
            return function.room(code.builder, nbytes, alignment)
        # Names in PTX have no points.
        name = module.get_unique_name("shared").replace(".", "_")
        memory = ll.GlobalVariable(module, I8, name, addrspace=SHARED)
        # llvmlite's globals still have a typed pointer, which fits nothing else.
        memory.type = SHARED_POINTER
        self.resize(function, memory, nbytes, alignment)
        return memory

    def resize(self, function: Entry, memory: ll.GlobalVariable, nbytes: int, alignment: int) -> None:
        """Gives memory of a kernel's blocks another size."""
        memory.linkage, memory.align = "internal", alignment
        memory.value_type = ll.ArrayType(I8, nbytes)
        memory.initializer = ll.Constant(memory.value_type, ll.Undefined)

    def text(self, module: ll.Module) -> str:
        """Returns a module as LLVM reads it."""
        return str(module)

    def linked(self, code: bytes) -> bytes:
        """Returns what the driver takes, from what LLVM has assembled."""
        return code

    def assembling(self, target: GpuTarget) -> Assembling:
        """Returns how code for a target is made."""
        return Assembling(target.triple, target.cpu, target.features, self.optimization, self.makes_text)

    def call(
        self,
        code: Code,
        name: str,
        result: ll.Type,
        operands: Sequence[ll.Value],
        convention: str,
        attributes: Sequence[str] = (),
    ) -> ll.Value:
        """Calls a function of the device, which is declared on first use."""
        module = code.builder.module
        function = module.globals.get(name)
        if function is None:
            function = ll.Function(module, ll.FunctionType(result, [operand.type for operand in operands]), name)
            function.calling_convention = convention
            for attribute in ("nounwind", *attributes):
                function.attributes.add(attribute)
        return code.builder.call(function, list(operands), cconv=convention or None)
