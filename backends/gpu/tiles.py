"""Decides when a contraction is computed in tiles, one for each block of threads, and of which size: larger tiles read
less memory, but there must be enough of them to keep the device busy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trivium.backends.gpu import shapes
from trivium.backends.gpu.dialect import STATIC_MEMORY, WARP, WARPGROUP
from trivium.backends.gpu.target import TENSOR_WIDEST, TF32_WIDEST, GpuTarget
from trivium.backends.gpu.tensor_maps import UNIT, WIDE_LINE, Boxed, boxed, copied
from trivium.compiler.kernel import storage_bytes
from trivium.compiler.kernel.attention import Attention
from trivium.compiler.kernel.chained import Chained
from trivium.compiler.kernel.contraction import Contraction, Role
from trivium.compiler.kernel.contraction_nest import sum_of
from trivium.compiler.kernel.dtypes import FLOATS
from trivium.compiler.kernel.kernel import Kernel
from trivium.compiler.kernel.structure import Apply, Block, Constant, Loop, Register
from trivium.compiler.schedule import LoopSchedule, Mapping, Unit
from trivium.compiler.target import MatrixInstruction

SIDE = 16
"""The threads of a block along rows and along columns."""

DEPTH = 16
"""The length of the piece of rows and columns that is in shared memory at a time."""

TILES = (64, 128), (32, 32)
"""The sizes of tiles, each with the number of them from which on it is used."""

TENSOR_TILES = (128, 96), (64, 8)
"""The same, for matrix instructions."""

WIDE_TILES, WIDE_LEAST, WIDE_WASTE = ((128, 256), (128, 192)), 96, 1.5
"""The rows and columns of larger tiles, the number of them from which on they are used, if some warps only copy, and
the most work for one that is needed. Matrix instructions then read less shared memory."""

BEGIN, STORE, NARROW = 3.0, 3.0, 1.03
"""What takes as long as multiplying lines of all rows and columns of a tile of 128 x 256, which is 0.65 us each on an
H200: to begin any tile, and to store one of that size; and how much longer it takes to multiply as many numbers in
smaller tiles."""

LEFT, LEFT_MORE = 0.166, 4.4e-4
"""The same for a tile's sums that a block leaves to another one, which adds them: a factor of their number, and one of
its square, since caches have room for few of them. Fitted to 30 such choices."""

COPIED_LEAST = 256
"""The number of products from which on an element of an operand that the device cannot copy by itself is worth a copy
of it that the device can."""

NARROW_TILE = 128, 64
"""The same, for results with few columns."""

LINE, CHUNK, STAGES = 64, 16, 3
"""With matrix instructions: the bytes of depth of a piece in shared memory, the bytes that are copied at once, and the
number of pieces that are there or on the way."""

ATTENTION_TILES = (64, 96), (32, 1)
"""The same, for the queries of attention."""

HALF_WARP_TILES, FUSED_KEYS = ((64, 128), (32, 128), (16, 1)), 64
"""The same, and the keys of a tile, where threads exchange words and copy while they compute."""

GRANTED_MEMORY = 99 << 10
"""The most bytes of shared memory that every GPU with matrix instructions grants a block at the launch."""

TENSOR_QUERIES, TENSOR_KEYS = 64, 32
"""With matrix instructions: the queries of a block, each warp of which has 16, and the keys of a tile (for more of
them, a thread has no registers beside its sums)."""

WARPGROUP_QUERIES, WARPGROUP_KEYS = 64, 64
"""The same with matrix instructions that four warps share. A block of 128 queries is not faster."""

WIDEST = 128
"""The most features, and products that a score sums, for which half a warp has registers and memory."""

MOST_COLUMNS = 64
"""The most features of values beside a tile of more than 32 queries: each thread has all of its sums."""

THREADS_ROUND = False
"""Whether matrix instructions multiply f32 that threads must copy and round to tf32, on devices that can do both by
themselves. On an H200, f32 is faster: ResNet-50 takes 0.65 ms instead of 1.74 ms."""

BUSY, LONG, SHORTEST_PART = 128, 2048, 256
"""The number of blocks up to which the depth of tiles is split among several blocks; the least depth for which that is
worth another launch, and that of each block."""

PROCESSORS = 132
"""The multiprocessors of an H100 or H200."""

WARPGROUP_ROWS = 64
"""The rows of a tile that are those of four warps."""

WARP_COLUMNS = 32
"""The columns of a tile that are one warp's."""


LARGEST = (1 << 31) - 1
"""The most iterations of the loops of one role, and the most tiles: their numbers are words of 32 bits."""


def warp_rows(tile: int) -> int:
    """Returns the rows of a tile that are one warp's."""
    return tile // 2


def choose(kernel: Kernel, loop: Loop, target: GpuTarget) -> LoopSchedule | None:
    """Returns the schedule of a contraction's parallel loop; None if tiles do not fit it."""
    if kernel.attention is not None:
        plan = _attention_plan(kernel.attention, loop, target)
        fits = plan is not None and _has_numbers(plan, kernel.attention.scores, kernel.attention.values)
        return plan if fits else None
    mark = kernel.contraction
    if mark is None or loop.extents != tuple(one.extent for one in mark.loops if one.role != "k"):
        return None
    rows, columns = (math.prod(mark.extents(role)) for role in ("m", "n"))
    if min(rows, columns) < SIDE or math.prod(mark.extents("k")) < DEPTH:
        return None
    plans = [
        (_tensor_plan(mark, loop, size, by, threads, target), least)
        for choose, threads in ((warpgroup_instruction, WARPGROUP), (instruction, WARP))
        if (by := choose(mark, target)) is not None
        for size, least in TENSOR_TILES
    ]
    larger = _wide_plan(mark, loop, target), _narrow_plan(mark, loop, target)
    plans[:0] = [(plan, WIDE_LEAST) for plan in larger if plan is not None]
    if shapes.fits(mark, target):
        if target.bulk_copies and not THREADS_ROUND:
            plans = [(plan, least) for plan, least in plans if plan.mapping(Unit.PRODUCER)]
        plans += [(plan, 1) for plan in shapes.plans(mark, loop)]
    plans += [(_plan(mark, loop, size), least) for size, least in TILES if _is_f32(mark)]
    found = next((plan for plan, least in plans if launch(plan)[1] * parts(mark, plan) >= least), None)
    return found if found is not None and _has_numbers(found, mark) else None


def _has_numbers(plan: LoopSchedule, *marks: Contraction) -> bool:
    """Whether there are numbers of 32 bits for all iterations and tiles."""
    roles: tuple[Role, ...] = "m", "n", "k"
    most = max(math.prod(mark.extents(role)) for mark in marks for role in roles)
    return max(most, launch(plan)[1]) <= LARGEST


def parts(mark: Contraction, plan: LoopSchedule) -> int:
    """Returns the number of blocks that share a tile: each sums a part of the depth."""
    if shape := shapes.shape_of(plan):
        return shapes.parts(mark, shape)
    depth = math.prod(mark.extents("k"))
    if depth < LONG:
        return 1
    if plan.mapping(Unit.PRODUCER) and pipeline(tile(plan), columns(plan)).persistent:
        return min(range(1, depth // SHORTEST_PART + 1), key=lambda count: _wide_time(mark, plan, count))
    return max(1, min(BUSY // launch(plan)[1], depth // SHORTEST_PART))


def _wide_time(mark: Contraction, plan: LoopSchedule, count: int) -> float:
    """Returns about how long a product takes in large tiles, each shared by `count` blocks: see `BEGIN`."""
    size, shares = tile(plan) * columns(plan) / math.prod(WIDE_TILES[0]), launch(plan)[1] * count
    lines = -(-math.prod(mark.extents("k")) * storage_bytes(mark.lhs.buffer.dtype) // WIDE_LINE)
    each = size * (-(-lines // count) * (1.0 if size >= 1.0 else NARROW) + STORE) + BEGIN
    left = size * shares if count > 1 else 0.0
    return -(-shares // PROCESSORS) * each + LEFT * left + LEFT_MORE * left**2


def split(kernel: Kernel, plan: LoopSchedule) -> dict[Loop, LoopSchedule]:
    """Returns the schedule of a contraction's sums if several blocks share a tile."""
    mark, loop = kernel.contraction, sum_of(kernel)
    if mark is None or loop is None or parts(mark, plan) == 1:
        return {}
    if shape := shapes.shape_of(plan):
        size = shapes.part_size(mark, shape, parts(mark, plan))
    else:
        # A piece in shared memory belongs to one part.
        pieces = -(-math.prod(mark.extents("k")) // WIDE_LINE)
        size = -(-pieces // parts(mark, plan)) * WIDE_LINE
    return {loop: LoopSchedule(loop.extents, (Mapping(Unit.GRID, tuple(range(len(loop.extents))), size),))}


def instruction(mark: Contraction, target: GpuTarget) -> MatrixInstruction | None:
    """Returns the instruction that multiplies and sums up as a contraction does. Its operands are read from memory as
    they are; only f32, if it may be rounded, can be computed on the way."""
    return _instruction(mark, target, target.matrix_instructions)


def warpgroup_instruction(mark: Contraction, target: GpuTarget) -> MatrixInstruction | None:
    """Returns the same for instructions that four warps share. Nothing is computed on the way to shared memory."""
    if mark.lhs_prologue is not None or mark.rhs_prologue is not None:
        return None
    return _instruction(mark, target, target.warpgroup_instructions)


def _instruction(
    mark: Contraction, target: GpuTarget, instructions: Sequence[MatrixInstruction]
) -> MatrixInstruction | None:
    kinds = {access.buffer.dtype for access in (mark.lhs, mark.rhs)}
    computed = mark.lhs_prologue is not None or mark.rhs_prologue is not None
    if target.tf32 and mark.accumulate == "f32" and (computed or kinds == {"f32"}):
        plain = [a for a, p in ((mark.lhs, mark.lhs_prologue), (mark.rhs, mark.rhs_prologue)) if p is None]
        operands = "tf32" if all(access.buffer.dtype == "f32" for access in plain) else ""
    else:
        operands = "" if computed or len(kinds) > 1 else str(*kinds)
    found = (one for one in instructions if one.operands == operands)
    return next((one for one in found if one.accumulate == mark.accumulate), None)


def _is_f32(mark: Contraction) -> bool:
    """Whether sums and factors are f32."""
    kinds = (None if mark.lhs_prologue else mark.lhs), (None if mark.rhs_prologue else mark.rhs)
    floats = all(access is None or access.buffer.dtype in FLOATS - {"f64"} for access in kinds)
    return mark.accumulate == "f32" and floats


def _plan(
    mark: Contraction, loop: Loop, size: int, threads: int = SIDE * SIDE, width: int | None = None
) -> LoopSchedule:
    batch, rows, columns = (mark.positions(role) for role in ("batch", "m", "n"))
    spread = Mapping(Unit.GRID, batch, 1), Mapping(Unit.GRID, rows, size), Mapping(Unit.GRID, columns, width or size)
    return LoopSchedule(loop.extents, (*spread, Mapping(Unit.BLOCK, (*rows, *columns), threads)))


def attention_instruction(mark: Attention | Chained, target: GpuTarget) -> MatrixInstruction | None:
    """Returns the instruction that multiplies the factors of attention as they are in memory, if these are narrow, or
    f32 that may be rounded, and nothing but a number is multiplied with them."""
    products, values = (mark.products if isinstance(mark, Chained) else (mark.scores,)), mark.values
    kinds = {access.buffer.dtype for access in (*(a for p in products for a in (p.lhs, p.rhs)), values.rhs)}
    scales = [scale_of(prologue) for p in products for prologue in (p.lhs_prologue, p.rhs_prologue)]
    depth, features = max(math.prod(product.extents("k")) for product in products), math.prod(values.extents("n"))
    if None in scales or scale_of(values.rhs_prologue) != 1.0 or len(kinds) > 1:
        return None
    operands = "tf32" if kinds == {"f32"} and target.tf32 else kinds.pop()
    if max(depth, features) > (TF32_WIDEST if operands == "tf32" else TENSOR_WIDEST):
        return None
    found = (one for one in target.matrix_instructions if one.operands == operands and one.accumulate == "f32")
    if isinstance(mark, Chained):
        return next(found, None)
    return next((one for one in found if attention_memory(depth, features, one) <= STATIC_MEMORY), None)


def warpgroup_attention_instruction(mark: Attention | Chained, target: GpuTarget) -> MatrixInstruction | None:
    """Returns the same of those that four warps share: values of 16 bits can be transposed."""
    found = attention_instruction(mark, target)
    if found is None or found.operands == "tf32":
        return None
    return next((one for one in target.warpgroup_instructions if one.operands == found.operands), None)


def attention_memory(depth: int, features: int, instruction: MatrixInstruction) -> int:
    """Returns the bytes of shared memory that attention takes: a block's queries, and a tile of keys and values."""
    size = 2 * CHUNK // instruction.depth
    return -(-depth * size // LINE) * LINE * (TENSOR_QUERIES + TENSOR_KEYS) + size * TENSOR_KEYS * width(features)


def width(features: int) -> int:
    """Returns the features of a tile of values."""
    return max(32, 1 << (-(-features // 16) * 16 - 1).bit_length())


def scale_of(prologue: Block | None) -> float | None:
    """Returns the number with which a prologue multiplies an element, once that is an f32; None if it does anything
    else."""
    if prologue is None:
        return 1.0
    value, scale = prologue.parameters[0], 1.0
    numbers: dict[Register, float] = {}
    for instruction in prologue.instructions:
        match instruction:
            case Constant(literal, result):
                numbers[result] = float(literal)
            case Apply("convert", (argument,), {"dtype": "f32"}, result) if argument is value:
                value = result
            case Apply("multiply", (one, other), _, result) if value in (one, other):
                factor = numbers.get(other if one is value else one)
                if factor is None:
                    return None
                value, scale = result, scale * factor
            case _:
                return None
    return scale if prologue.yields == [value] and value.dtype == "f32" else None


def _attention_plan(mark: Attention | Chained, loop: Loop, target: GpuTarget) -> LoopSchedule | None:
    batch, rows = (mark.values.positions(role) for role in ("batch", "m"))
    features = math.prod(mark.values.extents("n"))

    def by_matrices(queries: int, threads: int) -> LoopSchedule:
        # Each warp has 16 queries.
        spread = Mapping(Unit.GRID, batch, 1), Mapping(Unit.GRID, rows, queries)
        warps = Mapping(Unit.BLOCK, rows, queries // 16 * WARP), Mapping(Unit.MATRIX, rows, threads)
        return LoopSchedule(loop.extents, (*spread, *warps))

    if warpgroup_attention_instruction(mark, target) is not None:
        return by_matrices(WARPGROUP_QUERIES, WARPGROUP)
    if attention_instruction(mark, target) is not None:
        return by_matrices(TENSOR_QUERIES, WARP)
    if isinstance(mark, Chained):
        return None
    plans, halves = [], in_half_warps(mark, target)
    for size, least in HALF_WARP_TILES if halves else ATTENTION_TILES:
        nbytes = 4 * sum(lines * pitch(one) for lines, one in half_warp_sizes(mark, size)) if halves else 0
        spread = Mapping(Unit.GRID, batch, 1), Mapping(Unit.GRID, rows, size)
        plan = LoopSchedule(loop.extents, (*spread, Mapping(Unit.BLOCK, rows, SIDE * SIDE)))
        fits = (features <= MOST_COLUMNS or size <= 32) and nbytes <= GRANTED_MEMORY
        if launch(plan)[1] >= least and fits:
            plans.append(plan)
    return plans[0]


def in_half_warps(mark: Attention | Chained, target: GpuTarget) -> bool:
    """Whether threads share queries by halves of a warp: each has its own part of the features."""
    widths = math.prod(mark.scores.extents("k")), math.prod(mark.values.extents("n"))
    return bool(target.matrix_instructions) and max(widths) <= WIDEST


def half_warp_sizes(mark: Attention, queries: int) -> list[tuple[int, int]]:
    """Returns the lines in shared memory, and the f32 of each, of a tile of queries, one of keys, one of values, and
    one of weights."""
    depth = -(-math.prod(mark.scores.extents("k")) // 4) * 4
    features = -(-math.prod(mark.values.extents("n")) // (4 * SIDE)) * 4 * SIDE
    return [(queries, depth), (FUSED_KEYS, depth), (FUSED_KEYS, features), (queries, FUSED_KEYS)]


def pitch(width: int) -> int:
    """Returns the distance between lines of f32: an odd number of 16 bytes, so that threads that read neighbouring
    lines have no bank conflicts."""
    return width if width // 4 % 2 else width + 4


def _tensor_plan(
    mark: Contraction, loop: Loop, size: int, by: MatrixInstruction, threads: int, target: GpuTarget
) -> LoopSchedule:
    """Returns the plan of square tiles for matrix instructions, each of which `threads` threads share."""
    warps = size // warp_rows(size) * (size // WARP_COLUMNS)
    return _copied(mark, loop, (size, size), warps, by, threads, target, _arrays(mark))


def _wide_plan(mark: Contraction, loop: Loop, target: GpuTarget) -> LoopSchedule | None:
    """Returns the plan of the larger tiles that take the least time; None if no warp would only copy, or too much of
    the tiles would be beyond the ends of the result."""
    by, plans, found = warpgroup_instruction(mark, target), list[LoopSchedule](), _arrays(mark, by_copies=True)
    if by is None:
        return None
    for wide in WIDE_TILES:
        rows, columns = wide[::-1] if turned(found) == "n" else wide
        shares = (math.prod(mark.extents("m")) / rows, math.prod(mark.extents("n")) / columns)
        if math.prod(map(math.ceil, shares)) <= WIDE_WASTE * math.prod(shares):
            warps = wide[0] // WARPGROUP_ROWS * (WARPGROUP // WARP)
            plans.append(_copied(mark, loop, (rows, columns), warps, by, WARPGROUP, target, found))
    plans = [plan for plan in plans if plan.mapping(Unit.PRODUCER)]
    return min(plans, key=lambda plan: _wide_time(mark, plan, parts(mark, plan)), default=None)


def _narrow_plan(mark: Contraction, loop: Loop, target: GpuTarget) -> LoopSchedule | None:
    """Returns the plan of tiles with half as many columns as rows, for results that have no more; None if no warp would
    only copy."""
    by, (rows, columns) = warpgroup_instruction(mark, target), NARROW_TILE
    if by is None or math.prod(mark.extents("n")) > columns:
        return None
    warps = rows // WARPGROUP_ROWS * (WARPGROUP // WARP)
    plan = _copied(mark, loop, NARROW_TILE, warps, by, WARPGROUP, target, _arrays(mark))
    return plan if plan.mapping(Unit.PRODUCER) else None


Arrays = dict[Role, Boxed | None]
"""The operands of a product by the roles of their loops, if the device can copy pieces of them."""


def _arrays(mark: Contraction, by_copies: bool = False) -> Arrays:
    """Returns the operands as arrays. `by_copies`: also as copies, where that takes less time than what is saved: of
    factors that are not arrays, and of one whose lines run across the depth, as those of the other one do, if matrix
    instructions cannot transpose them."""
    roles: tuple[Role, ...] = "m", "n"
    found: Arrays = {role: boxed(mark, role) for role in roles}
    if not by_copies:
        return found
    for role, other in zip(roles, roles[::-1], strict=True):
        pays = math.prod(mark.extents(other)) >= COPIED_LEAST
        own, beside = found[role], found[other]
        both = own is not None and beside is not None and not own.fits and not beside.fits
        if pays and (own is None or both):
            found[role] = copied(mark, role) or own
    return found


def turned(found: Arrays) -> Role | None:
    """Returns the role of the factor whose lines in memory run across the depth, if both can be copied in boxes, and
    only this one does not fit matrix instructions."""
    across: list[Role] = [role for role, one in found.items() if one is not None and not one.fits]
    return across[0] if len(across) == 1 and None not in found.values() else None


def _copied(
    mark: Contraction,
    loop: Loop,
    sides: tuple[int, int],
    warps: int,
    by: MatrixInstruction,
    threads: int,
    target: GpuTarget,
    found: Arrays,
) -> LoopSchedule:
    """Returns the plan of tiles for matrix instructions, with what the device itself copies. If that is both operands,
    some warps only start the copies."""
    boxes = found if threads == WARPGROUP and target.bulk_copies else {}
    bulk: list[Role] = [role for role, one in boxes.items() if one is not None and one.fits]
    if by.operands == "tf32" and pipeline(*sides).persistent and boxes and turned(boxes) is not None:
        bulk = list(boxes)
    copying = pipeline(*sides).copying if len(bulk) == len(found) else 0
    plan = _plan(mark, loop, sides[0], warps * WARP + copying, sides[1])
    inner = plan.mappings[-1].dimensions
    more = [Mapping(Unit.MATRIX, inner, threads)]
    more += [Mapping(Unit.BULK, mark.positions(role), WIDE_LINE) for role in bulk]
    more += [Mapping(Unit.COPIED, mark.positions(role), UNIT) for role in bulk if (one := boxes[role]) and one.source]
    more += [Mapping(Unit.PRODUCER, inner, copying)] if copying else []
    return replace(plan, mappings=(*plan.mappings, *more))


def tile(plan: LoopSchedule) -> int:
    """Returns the rows of a schedule's tiles; 0 if it has none."""
    spread = [mapping for mapping in plan.mappings if mapping.unit is Unit.GRID]
    return spread[1].size if len(spread) > 1 else 0


def columns(plan: LoopSchedule) -> int:
    """Returns the columns of a schedule's tiles; 0 if it has none."""
    spread = [mapping for mapping in plan.mappings if mapping.unit is Unit.GRID]
    return spread[2].size if len(spread) > 2 else 0


@dataclass(frozen=True)
class Pipeline:
    """How a block works on its tiles, if four warps share a matrix instruction. `stages`: the pieces that are in shared
    memory or on the way; `resident`: the blocks for which a multiprocessor has room; `copying`: the threads that only
    start copies, if there are any; `persistent`: each block computes several tiles."""

    stages: int
    resident: int
    copying: int
    persistent: bool


SQUARE = Pipeline(STAGES, resident=2, copying=WARP, persistent=False)
"""While one block stores its results, the other one multiplies. Each thread has 112 registers, of which the sums of a
tile of 128 take 64."""

WIDE = Pipeline(4, resident=1, copying=WARPGROUP, persistent=True)
"""Only groups of four warps exchange registers."""


def pipeline(rows: int, columns: int) -> Pipeline:
    """Returns how blocks work on tiles of some size."""
    return WIDE if any({rows, columns} == set(wide) for wide in WIDE_TILES) else SQUARE


def launch(plan: LoopSchedule) -> tuple[int, int, int]:
    """Returns the results of all tiles, the number of tiles, and the threads of each."""
    extents = plan.static_extents
    assert extents is not None, "a contraction's extents are numbers"
    spread = [mapping for mapping in plan.mappings if mapping.unit is Unit.GRID]
    blocks = math.prod(-(-math.prod(extents[d] for d in one.dimensions) // one.size) for one in spread)
    return math.prod(extents), blocks, plan.mappings[len(spread)].size
