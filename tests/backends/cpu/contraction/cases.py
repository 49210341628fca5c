"""Kernels of matrix products and convolutions in any memory layout, and NumPy's results for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trivium.backends.cpu.assembly import assemble_program
from trivium.backends.cpu.executable import CpuExecutable
from trivium.backends.cpu.target import CpuTarget, host
from trivium.compiler import program
from trivium.compiler.kernel import Buffer, Index, Kernel, expression
from trivium.compiler.kernel.builder import KernelBuilder
from trivium.compiler.kernel.contraction import Access, Contraction, ContractionLoop, Subscript
from trivium.compiler.kernel.contraction_nest import contraction_kernel
from trivium.compiler.kernel.dtypes import INTEGERS, DType, from_numpy, numpy_dtype
from trivium.compiler.kernel.index import variable
from trivium.compiler.kernel.structure import Block, Register

Order = tuple[int, ...]
"""An operand's dimensions, from the slowest to the fastest in memory."""

Epilogue = Callable[[KernelBuilder, Register, tuple[Register | Index, ...]], Register]


@dataclass(frozen=True)
class Case:
    """A kernel with its operands: arrays whose dimensions are in the order of their names, not of memory."""

    kernel: Kernel
    operands: dict[Buffer, np.ndarray]
    result: Buffer
    order: Order

    def run(self, constants: set[str] = frozenset(), threads: int = 1, target: CpuTarget | None = None) -> np.ndarray:
        """Returns the kernel's result, compiled; operands named in `constants` are known to the compiler."""
        executable = self.executable(constants, (target or host()).with_threads(threads))
        (result,) = executable.execute(*(self.operands[buffer] for buffer in self._inputs(constants)))
        return result.transpose(np.argsort(self.order))

    def executable(self, constants: set[str], target: CpuTarget) -> CpuExecutable:
        """Returns the compiled kernel, whose result's dimensions are in `order`."""
        inputs = self._inputs(constants)
        values = {}
        for buffer, array in self.operands.items():
            storage = program.Constant(array) if buffer.name in constants else program.Input(inputs.index(buffer))
            values[buffer] = program.Array(buffer.name, buffer.dtype, buffer.shape, storage)
        values[self.result] = program.Array("result", self.result.dtype, self.result.shape, program.Output(0))
        launch = program.Launch(self.kernel, tuple(values[param] for param in self.kernel.params))
        whole = program.Program("case", [values[b] for b in inputs], [values[self.result]], [launch])
        return CpuExecutable(assemble_program(whole, target))

    def _inputs(self, constants: set[str]) -> list[Buffer]:
        return [buffer for buffer in self.operands if buffer.name not in constants]


def laid_out(array: np.ndarray, order: Order) -> np.ndarray:
    return np.ascontiguousarray(array.transpose(order))


def buffer(name: str, array: np.ndarray, order: Order, mode: str = "in") -> Buffer:
    return Buffer(name, from_numpy(array.dtype), tuple(array.shape[d] for d in order), mode)


def accumulated(x: Buffer, y: Buffer) -> DType:
    """Returns the type in which products of the elements are added."""
    if x.dtype in INTEGERS:
        return DType("i32")
    return DType("f64" if "f64" in (x.dtype, y.dtype) else "f32")


def epilogue_block(result: Buffer, order: Order, dtype: str, rank: int, epilogue: Epilogue | None) -> Block:
    """Stores epilogue(sum) at the result's indices; `order` is the result's."""
    builder = KernelBuilder("epilogue")
    total, indices = Register(dtype), tuple(Register("i64") for _ in range(rank))
    builder.body.parameters = [total, *indices]
    value = total if epilogue is None else epilogue(builder, total, indices)
    builder.store(result, value, *(indices[d] for d in order))
    return builder.body


def matmul(
    lhs: np.ndarray, rhs: np.ndarray, orders: tuple[Order, Order, Order] = ((0, 1, 2),) * 3,
    extra: dict[Buffer, np.ndarray] | None = None, epilogue: Epilogue | None = None,
) -> Case:  # fmt: skip
    """lhs[b, m, k] @ rhs[b, k, n], with the three arrays' dimensions in memory in the given orders."""
    batch, m, k = lhs.shape
    n = rhs.shape[2]
    x, y = buffer("lhs", lhs, orders[0]), buffer("rhs", rhs, orders[1])
    sums = accumulated(x, y)
    z = buffer("result", np.empty((batch, m, n), numpy_dtype(sums)), orders[2], "out")
    loops = tuple(ContractionLoop(role, extent) for role, extent in (("batch", batch), ("m", m), ("n", n), ("k", k)))
    one = {name: Subscript(variable(loop)) for name, loop in zip("bmnk", loops, strict=True)}
    contraction = Contraction(
        loops=loops,
        lhs=Access(x, tuple(one["bmk"[d]] for d in orders[0])), rhs=Access(y, tuple(one["bkn"[d]] for d in orders[1])),
        accumulate=sums, epilogue=epilogue_block(z, orders[2], sums, 3, epilogue),
    )  # fmt: skip
    extra = extra or {}
    kernel = contraction_kernel("matmul", [x, y, *extra, z], contraction)
    return Case(kernel, {x: laid_out(lhs, orders[0]), y: laid_out(rhs, orders[1]), **extra}, z, orders[2])


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def whole(low: int, high: int, *shape: int, dtype: type) -> np.ndarray:
    """Returns integers from `low` to `high`, of which both occur."""
    array = np.random.default_rng(sum(shape)).integers(low, high, shape, endpoint=True)
    array.flat[:2] = low, high
    return array.astype(dtype)


def assert_close(got: np.ndarray, want: np.ndarray, tolerance: float = 1e-5) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


CONSTANTS = (set(), {"rhs"}, {"lhs"}, {"lhs", "rhs"})

NCHW: Order = (0, 1, 2, 3)
NHWC: Order = (0, 2, 3, 1)
HWIO: Order = (2, 3, 1, 0)


@dataclass(frozen=True)
class Window:
    """A convolution's attributes, per spatial dimension."""

    stride: tuple[int, int] = (1, 1)
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))
    lhs_dilation: tuple[int, int] = (1, 1)
    rhs_dilation: tuple[int, int] = (1, 1)
    reversal: tuple[bool, bool] = (False, False)
    groups: int = 1

    def extent(self, d: int, size: int, kernel: int) -> int:
        """Returns an extent of the result."""
        padded = (size - 1) * self.lhs_dilation[d] + 1 + sum(self.padding[d])
        return (padded - (kernel - 1) * self.rhs_dilation[d] - 1) // self.stride[d] + 1


LAYOUTS = {
    "channels last": (NHWC, HWIO, NHWC),
    "channels first": (NCHW, NCHW, NCHW),
    "last to first": (NHWC, HWIO, NCHW),
    "first to last": (NCHW, HWIO, NHWC),
    "batch innermost": ((1, 2, 3, 0),) * 3,
    "odd": ((3, 1, 0, 2), (1, 3, 0, 2), (2, 0, 3, 1)),
}
ONE = ((1, 1), (1, 1))
WINDOWS = {
    "plain": ((2, 5, 9, 11), (7, 5, 3, 3), Window()),
    "padded": ((2, 20, 9, 11), (18, 20, 3, 3), Window(padding=ONE)),
    "strided": ((2, 20, 9, 11), (18, 20, 3, 2), Window((2, 3), ((2, 0), (1, 3)), rhs_dilation=(2, 1))),
    "dilated": (
        (2, 20, 9, 11),
        (18, 20, 3, 2),
        Window((1, 2), ((2, 0), (1, 3)), (2, 3), (1, 2), reversal=(True, False)),
    ),
    "gradient of the input": ((2, 20, 5, 6), (18, 20, 3, 3), Window((1, 1), ((1, 2), (2, 1)), (2, 3))),
    "few taps": ((2, 20, 5, 6), (18, 20, 1, 2), Window((1, 1), ((0, 1), (1, 0)), (2, 3), (1, 2))),
    "grouped": ((2, 6, 9, 11), (12, 2, 3, 3), Window(padding=ONE, groups=3)),
    "depthwise": ((2, 20, 9, 11), (20, 1, 3, 3), Window((1, 2), ONE, groups=20)),
    "one by one": ((1, 32, 14, 14), (40, 32, 1, 1), Window()),
    "stem": ((2, 3, 20, 20), (20, 3, 7, 7), Window((2, 2), ((3, 3), (3, 3)))),
    "cut off": ((3, 4, 20, 20), (40, 4, 3, 3), Window(padding=((-1, 2), (0, -2)))),
    "gradient of the weights": ((8, 4, 14, 14), (6, 4, 12, 12), Window(padding=ONE)),
}


def convolution(
    lhs: np.ndarray, rhs: np.ndarray, window: Window, orders: tuple[Order, Order, Order] = (NCHW, NCHW, NCHW),
    extra: dict[Buffer, np.ndarray] | None = None, epilogue: Epilogue | None = None,
) -> Case:  # fmt: skip
    """lhs[batch, feature, h, w] and rhs[output feature, input feature, h, w], in memory in the given orders."""
    batch, _, *sizes = lhs.shape
    outputs, inputs, *kernel = rhs.shape
    extents = [window.extent(d, sizes[d], kernel[d]) for d in range(2)]
    x, y = buffer("lhs", lhs, orders[0]), buffer("rhs", rhs, orders[1])
    sums = accumulated(x, y)
    z = buffer("result", np.empty((batch, outputs, *extents), numpy_dtype(sums)), orders[2], "out")
    per_group = outputs // window.groups
    names = ("g", "i", "oh", "ow", "o", "c", "kh", "kw")
    counts = (window.groups, batch, *extents, per_group, inputs, *kernel)
    roles = ("batch", "m", "m", "m", "n", "k", "k", "k")

    loops = tuple(ContractionLoop(role, count) for role, count in zip(roles, counts, strict=True))
    named = dict(zip(names, loops, strict=True))

    def at(offset: int = 0, dilation: int = 1, **coefficients: int) -> Subscript:
        return Subscript(expression(((named[name], c) for name, c in coefficients.items()), offset), dilation)

    lhs_at, rhs_at = [at(i=1), at(g=inputs, c=1)], [at(g=per_group, o=1), at(c=1)]
    for d, (position, tap) in enumerate((("oh", "kh"), ("ow", "kw"))):
        terms = {position: window.stride[d], tap: window.rhs_dilation[d]}
        lhs_at.append(at(-window.padding[d][0], window.lhs_dilation[d], **terms))
        rhs_at.append(at(kernel[d] - 1, **{tap: -1}) if window.reversal[d] else at(**{tap: 1}))

    def indices(all_indices: tuple[Register, ...]) -> tuple[Register | Index, ...]:
        g, i, oh, ow, o = all_indices
        return i, expression([(g, per_group), (o, 1)]), oh, ow

    builder = KernelBuilder("epilogue")
    total, parameters = Register(sums), tuple(Register("i64") for _ in range(5))
    builder.body.parameters = [total, *parameters]
    place = indices(parameters)
    value = total if epilogue is None else epilogue(builder, total, place)
    builder.store(z, value, *(place[d] for d in orders[2]))
    contraction = Contraction(
        loops=loops,
        lhs=Access(x, tuple(lhs_at[d] for d in orders[0])), rhs=Access(y, tuple(rhs_at[d] for d in orders[1])),
        accumulate=sums, epilogue=builder.body,
    )  # fmt: skip
    extra = extra or {}
    kernel_ = contraction_kernel("convolution", [x, y, *extra, z], contraction)
    return Case(kernel_, {x: laid_out(lhs, orders[0]), y: laid_out(rhs, orders[1]), **extra}, z, orders[2])


def reference(lhs: np.ndarray, rhs: np.ndarray, window: Window) -> np.ndarray:
    """Returns the convolution, by sliding windows over the dilated and padded input."""
    for d in range(2):
        lhs = _padded(_dilated(lhs, 2 + d, window.lhs_dilation[d]), 2 + d, *window.padding[d])
        rhs = np.flip(rhs, 2 + d) if window.reversal[d] else rhs
    spans = tuple((rhs.shape[2 + d] - 1) * window.rhs_dilation[d] + 1 for d in range(2))
    views = np.lib.stride_tricks.sliding_window_view(lhs, spans, axis=(2, 3))
    steps = (*window.stride, *window.rhs_dilation)
    views = views[(slice(None), slice(None), *(slice(None, None, step) for step in steps))]
    features = np.split(views, window.groups, axis=1), np.split(rhs, window.groups)
    parts = [np.einsum("nchwij,ocij->nohw", x, w, optimize=True) for x, w in zip(*features, strict=True)]
    return np.concatenate(parts, axis=1)


def _dilated(array: np.ndarray, axis: int, dilation: int) -> np.ndarray:
    shape = list(array.shape)
    shape[axis] = (shape[axis] - 1) * dilation + 1
    result = np.zeros(shape, array.dtype)
    result[(slice(None),) * axis + (slice(None, None, dilation),)] = array
    return result


def _padded(array: np.ndarray, axis: int, low: int, high: int) -> np.ndarray:
    """Pads an array; negative padding crops."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (max(low, 0), max(high, 0))
    array = np.pad(array, widths)
    return array[(slice(None),) * axis + (slice(max(-low, 0), array.shape[axis] - max(-high, 0)),)]
