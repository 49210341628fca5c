"""The schedule of a contraction: register tile, panels, blocks of the reduction, chunks of work, and which operands are
packed. Plain data, chosen from the shape and the target's vectors, registers and caches; printed with the kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from trivium.compiler.contraction.problem import Access, AxisGroup, Problem, lies_across
from trivium.compiler.target import MatrixInstruction, Target

MOST_ROWS = 10
"""The maximal number of rows in a tile: each needs a register for its address, and the broadcasts of many rows fall on
few sets of the first-level cache."""
SHORTEST_RUN, SHORTEST_RUN_OF_FEW, FEW_PANELS = 16, 4, 2
"""The number of steps below which setting up the rows' addresses would cost more than packing lhs, if each must be
checked for padding; for up to a few panels, each of which sets them up again, it is the second number."""
SHORTEST_SAFE_RUN = 3
"""The same, if no address needs to be checked."""
LONGEST_STEP = 1024
"""The distance in bytes between rows of rhs up to which they are read in place: longer strides fall on few sets of the
caches."""
MANY_PANELS = 8
"""With so many panels, each of which reads lhs, packing in tiles is faster even if lhs is in the second-level cache."""
FEWEST_FAR = 256
"""With fewer steps, a tile's lines of memory are still in the cache when the next tile reads them."""
MOST_NEAR, MOST_FAR = 16, 4
"""The numbers of tiles up to which packing a panel takes longer than reading it in place again and again: from the
second-level cache, and from behind it."""
MOST_IN_BLOCKS = 48
"""The same, where the reduction is in short blocks anyway."""
SOON_DONE = 256
"""With so few rows, a panel is used up before the processor has prefetched the next one by itself."""
MOST_FOLDED = 24
"""The number of rows up to which folding the lanes of sums takes less time than turning rhs around for them."""
SHORTEST_FOLDED = 4
"""The length of such sums, in vectors."""
FOLDED_SHARE = 2
"""The largest lhs of such sums, in sizes of the first-level cache: each vector of columns reads it again."""
USUAL_PANEL = 8
"""The number of vectors in a panel that keeps the multipliers busy with any number of rows. A single row takes wider
panels, where threads find enough of them: memory is read faster along its rows than in strips across them."""
FEW_ROWS = 4
"""Up to so many rows take less time than reading rhs does, which prefetching ahead only disturbs."""
STREAMS = 8
"""The number of rows of an rhs beyond the second-level cache that are read at the same time, where few rows of lhs are
multiplied with it: memory delivers several streams faster than one."""
MOST_STREAMED, FEWEST_AHEAD = 24, 3
"""The most rows of lhs that are few, and from how many on rhs is requested ahead: fewer take less time than reading."""
SHORTEST_STREAM = 16
"""The number of vectors in a row from which this pays off, because the sums are kept in memory meanwhile."""
STREAMED_SHARE = 1 / 2
"""The share of the first-level cache for these sums."""

# Shares of the second-level cache.
PANEL_SHARE = 1 / 4
SPREAD_SHARE = 1 / 2
FAR_SHARE = 1 / 4
LHS_SHARE, TILES_SHARE = 3 / 8, 1 / 2
SUMS_SHARE = 1 / 4

LINES_SHARE = 1 / 4
"""The share of the first-level cache for lines of lhs, one for each step, of which neighbouring tiles use parts."""


@dataclass(frozen=True)
class Split:
    """`extent` things in `count` parts that are as even as possible: the first `larger` parts hold `size`, the others
    one fewer."""

    extent: int
    count: int

    @property
    def size(self) -> int:
        return -(-self.extent // self.count)

    @property
    def larger(self) -> int:
        return self.extent - (self.size - 1) * self.count

    def start(self, part: int) -> int:
        """Returns the start of a part."""
        return part * (self.size - 1) + min(part, self.larger)

    @property
    def sizes(self) -> list[int]:
        return [self.size] * self.larger + [self.size - 1] * (self.count - self.larger)


def split(extent: int, most: int) -> Split:
    return Split(extent, max(1, -(-extent // most)))


@dataclass(frozen=True)
class Reading:
    """Which operands are converted when they are read, because memory holds them in another type. `exact_terms` is the
    number of products of integers that f32 adds exactly; None for products of floats. `matrices` are the instructions
    that multiply tiles of the operands as memory holds them; `alike`: both have a sign, or neither has one."""

    lhs: bool = False
    rhs: bool = False
    exact_terms: int | None = None
    matrices: tuple[MatrixInstruction, ...] = ()
    alike: bool = True


AS_STORED = Reading()


class Rhs(Enum):
    """Where the micro-kernel finds rhs: packed when the code is loaded; packed during the run; in place, if its rows
    are short and evenly spaced; read element by element, if each element is used once; or in place along the
    reduction, in sums whose lanes are folded at the end; or in place, line by line of an image."""

    CONSTANT = "constant"
    PACKED = "packed"
    IN_PLACE = "in place"
    DIRECT = "direct"
    FOLDED = "folded"
    IMAGE = "an image in place"


@dataclass(frozen=True)
class Reduction:
    """The reduction as `taps` runs, along each of which lhs advances by one constant stride; a block holds `block_taps`
    whole runs or, if runs are long, `block_run` steps."""

    taps: int
    run: int
    block_taps: int
    block_run: int

    @property
    def run_blocks(self) -> int:
        return -(-self.run // self.block_run)

    @property
    def blocks(self) -> int:
        return -(-self.taps // self.block_taps) * self.run_blocks

    def begins_at_multiples(self, lanes: int) -> bool:
        """Whether every block begins at a multiple of `lanes`."""
        run = self.block_run if self.run_blocks > 1 else self.block_taps * self.run
        return self.blocks == 1 or (run % lanes == 0 and (self.run_blocks == 1 or self.run % lanes == 0))

    @property
    def most_steps(self) -> int:
        """The maximal number of steps of one block."""
        return self.block_taps * self.block_run


@dataclass(frozen=True)
class Tiling:
    """The schedule. Panels are vectors of columns, tiles are rows; units of work are chunks of tiles times groups of
    panels."""

    lanes: int
    panels: Split
    tiles: Split
    reduction: Reduction
    chunks: Split
    groups: Split
    pack_lhs: bool
    rhs: Rhs
    by_rows: bool
    """Whether a unit writes all panels of its first tile, whose lhs stays in the first-level cache, then those of the
    next one: rows of the result. Or all tiles of its first panel, which then comes from near caches."""
    prefetch: bool
    """Whether tiles request what is read of rhs after their block while they work on this one."""
    skips_padding: bool = False
    """Whether tiles leave out the taps at which all their rows are padding: all factors there must be finite."""
    converts_panels: bool = False
    """Whether panels of a packed constant, which is of another type, are converted once for all tiles of a unit."""
    matrix: MatrixInstruction | None = None
    """The instruction that multiplies tiles (`matrix_tiling.py`) or adds products in lanes (`dot_tiling.py`)."""
    line: int = 0
    """The number of vectors in a line of an image (`image_tiling.py`)."""
    lhs_in_tiles: bool = False
    """Whether packed lhs consists of tiles, which hold their rows step by step (`tile_packing.py`)."""

    def __str__(self) -> str:
        tile = f"tile {self.tiles.size}x{self.panels.size * self.lanes}, blocks of {self.reduction.most_steps}"
        lhs = "packed in tiles" if self.lhs_in_tiles else "packed" if self.pack_lhs else "in place"
        operands = f"lhs {lhs}, rhs {self.rhs.value}"
        padding = ", padding left out" if self.skips_padding else ""
        one = self.matrix
        matrix = f", products of {one.rows}x{one.columns}x{one.depth} {one.operands}" if one else ""
        return f"schedule {{ {tile}, units {self.chunks.count}x{self.groups.count}, {operands}{padding}{matrix} }}"


@dataclass(frozen=True)
class Knobs:
    """What can be chosen otherwise than by the estimates, for one shape: the number of vectors in a panel (0 for that
    of `widest_panel`), and the share of the second-level cache for a block of a panel."""

    vectors: int = 0
    panel_share: float = PANEL_SHARE


ESTIMATED = Knobs()

KNOBS = tuple(Knobs(vectors, share) for share in (PANEL_SHARE, 1 / 2, 1 / 8) for vectors in (0, 1, 2, 3, 4, 5, 6, 8))
"""What is measured if a program is tuned."""


def rows_that_fit(vectors: int, registers: int) -> int:
    """Returns the number of rows of accumulators that fit beside one row of rhs vectors and one broadcast of lhs."""
    return min(MOST_ROWS, (registers - 2 - vectors) // vectors)


def widest_panel(rows: int, registers: int, most: int = USUAL_PANEL) -> int:
    """Returns the number of vectors in a panel: as many, up to `most`, as make one tile of few rows, which reads rhs
    once and keeps the multipliers busy; for more rows, four, or two if registers are few."""
    usual = 4 if registers >= 32 and rows > MOST_ROWS else 2
    return max(usual, min(most, (registers - 2) // (rows + 1)))


def choose(
    problem: Problem,
    element_bytes: int,
    target: Target,
    constant_rhs: bool,
    knobs: Knobs = ESTIMATED,
    finite_rhs: bool = False,
    reading: Reading = AS_STORED,
) -> Tiling:
    """Returns the schedule of a problem in canonical form. `finite_rhs` says that rhs has no infinities and no NaNs."""
    lanes, cache = target.vector_bytes // element_bytes, target.cache_bytes[1]
    run, total = run_of(problem.reduction, problem.lhs), problem.reduction.extent
    whole = reading.exact_terms is None or total <= reading.exact_terms
    if not constant_rhs and whole and _folds(problem, lanes, FOLDED_SHARE * target.cache_bytes[0] // element_bytes):
        return _folded(problem, lanes, target, reading)
    cost = target.product_cost(problem.flops, element_bytes, problem.read * element_bytes)
    threads = max(1, min(target.threads, pieces := int(cost / target.piece_cost)))
    # Operands that are converted keep the processor busy enough.
    plain = whole and not (constant_rhs or reading.lhs or reading.rhs)
    streams = plain and _streams(problem, lanes, element_bytes, cache)
    wide = knobs.vectors or USUAL_PANEL * streams
    panels, tiles = tiles_of(problem, lanes, target.vector_registers, threads, wide)
    shares = _shares_lines(problem, element_bytes, target)
    rhs = Rhs.CONSTANT if constant_rhs else _rhs(problem, element_bytes, target, tiles, reading.rhs, shares)
    rhs = Rhs.IN_PLACE if streams else Rhs.PACKED if rhs is Rhs.DIRECT and not whole else rhs
    direct = rhs is Rhs.DIRECT
    unsuitable = not direct and (_is_uneven(problem, panels) or _is_far_apart(problem, element_bytes, panels, cache))
    pack_lhs = not problem.elementwise and (reading.lhs or unsuitable)
    in_tiles = pack_lhs and not direct and _lies_by_steps(problem)
    if pack_lhs or direct:
        run = total
    row_bytes = panels.size * lanes * element_bytes
    most_steps = total if direct else int(knobs.panel_share * cache) // row_bytes
    if streams:
        most_steps = STREAMS
    elif shares and not (pack_lhs or direct):
        most_steps = min(most_steps, int(LINES_SHARE * target.cache_bytes[0]) // target.alignment)
    if reading.exact_terms is not None and not whole:
        # Blocks may be nearly twice as long, so that they begin where the faster axes do.
        most_steps = min(most_steps, reading.exact_terms // 2)
    reduction = blocks_of(problem.reduction, total // run, run, most_steps, lanes if pack_lhs else 1)
    # Tiles are packed faster if more of a step's neighbours are read at once.
    share = TILES_SHARE if in_tiles else LHS_SHARE
    most_rows = int(share * cache) // (element_bytes * reduction.most_steps) if pack_lhs else problem.rows.extent
    sums = int(STREAMED_SHARE * target.cache_bytes[0] if streams else SUMS_SHARE * cache) // row_bytes
    many = problem.rows.extent > SOON_DONE and not problem.elementwise
    converts = rhs is Rhs.CONSTANT and reading.rhs and tiles.count > 1
    by_rows = reduction.blocks == 1 and many and rhs is Rhs.CONSTANT and not (pack_lhs or converts)
    # By rows, the panels are read again for each tile: from the second-level cache, as processors differ by a factor of
    # three in how fast they read the next one.
    together = max(1, cache // (row_bytes * total)) if by_rows else 8 if pack_lhs else 1
    chunks, groups = units_of(reduction, panels, tiles, sums, max(1, most_rows), together)
    if target.threads > 1:
        rows_first = rhs is not Rhs.PACKED and (pack_lhs or problem.columns.extent * total < moved(problem))
        wanted = min((1 if streams else 4) * target.threads, pieces)
        chunks, groups = shared_out(chunks, groups, problem.batch.extent, wanted, rows_first)
    prefetch = _prefetches(problem, streams, rhs is Rhs.CONSTANT and not converts, panels.count * reduction.blocks)
    skips = finite_rhs and bool(problem.lhs.windows) and not pack_lhs and run >= SHORTEST_RUN
    places = (lanes, panels, tiles, reduction, chunks, groups, pack_lhs, rhs)
    return Tiling(*places, by_rows, prefetch, skips, converts, lhs_in_tiles=in_tiles)


def _prefetches(problem: Problem, streams: bool, packed: bool, blocks: int) -> bool:
    """Whether rows are so few that what follows in rhs is needed soon: rows in streams, or a packed block."""
    rows = problem.rows.extent
    return rows >= FEWEST_AHEAD if streams else packed and FEW_ROWS < rows <= SOON_DONE and blocks > 1


def _is_uneven(problem: Problem, panels: Split) -> bool:
    """Whether lhs advances evenly for a few steps only."""
    shortest = SHORTEST_RUN_OF_FEW if panels.count <= FEW_PANELS else SHORTEST_RUN
    shortest = shortest if problem.lhs.windows else SHORTEST_SAFE_RUN
    return run_of(problem.reduction, problem.lhs) < min(shortest, problem.reduction.extent)


def _is_far_apart(problem: Problem, element_bytes: int, panels: Split, cache: int) -> bool:
    """Whether reading lhs in place takes longer than packing it in tiles, because its steps are far apart."""
    if not _lies_by_steps(problem):
        return False
    steps, step = problem.reduction.extent, problem.lhs.stride(problem.reduction.axes[-1]) * element_bytes
    many = panels.count >= MANY_PANELS
    return step > LONGEST_STEP and (many or steps >= FEWEST_FAR) and steps * step >= (FAR_SHARE if many else 1) * cache


def _shares_lines(problem: Problem, element_bytes: int, target: Target) -> bool:
    """Whether neighbouring tiles of lhs read parts of the same cache lines, one line for each step, and a tile reads
    more lines than fit in the first-level cache."""
    if not _lies_by_steps(problem) or problem.reduction.extent * target.alignment <= target.cache_bytes[0]:
        return False
    return problem.lhs.stride(problem.reduction.axes[-1]) * element_bytes <= LONGEST_STEP


def _lies_by_steps(problem: Problem) -> bool:
    """Whether the rows of lhs are neighbours in memory, and its steps evenly spaced."""
    rows, reduction, lhs = problem.rows.axes, problem.reduction, problem.lhs
    if lhs.windows or problem.elementwise or len(rows) != 1 or not reduction.axes:
        return False
    return lhs.stride(rows[0]) == 1 and run_of(reduction, lhs) == reduction.extent


def _streams(problem: Problem, lanes: int, element_bytes: int, cache: int) -> bool:
    """Whether rows of rhs are read several at a time: it is large, they are contiguous, and lhs has few rows."""
    columns = problem.columns.extent
    if problem.elementwise or problem.rows.extent > MOST_STREAMED or columns < SHORTEST_STREAM * lanes:
        return False
    nbytes, step = problem.reduction.extent * columns * element_bytes, rhs_step(problem) * element_bytes
    few = problem.rows.extent < FEWEST_AHEAD
    return step > 0 and nbytes >= cache and (few or (nbytes > cache and step > LONGEST_STEP))


def _folds(problem: Problem, lanes: int, most: int) -> bool:
    """Whether few rows, of less than `most` elements, are multiplied with an rhs that is contiguous along the
    reduction, as lhs is: then both are read in place."""
    reduction, operands = problem.reduction, (problem.lhs, problem.rhs)
    if len(reduction.axes) != 1 or problem.elementwise or any(operand.windows for operand in operands):
        return False
    along = all(operand.stride(reduction.axes[0]) == 1 for operand in operands)
    across = any(problem.rhs.stride(axis) == 1 for axis in problem.columns.axes)
    long = reduction.extent >= SHORTEST_FOLDED * lanes and problem.columns.extent >= lanes
    few = problem.rows.extent < FEW_ROWS or problem.rows.extent * reduction.extent < most
    return along and not across and long and few and problem.rows.extent <= MOST_FOLDED


def _folded(problem: Problem, lanes: int, target: Target, reading: Reading) -> Tiling:
    """Returns the schedule of `Rhs.FOLDED`: a unit is all rows with one vector of columns, or with several if the rows
    are converted and packed for it."""
    columns, run = split(-(-problem.columns.extent // lanes), 1), problem.reduction.extent
    tiles = split(problem.rows.extent, target.vector_registers // 4)
    pack = reading.lhs and problem.rows.extent > 1
    whole, groups = Split(tiles.count, 1), split(columns.count, 8) if pack else columns
    large = problem.columns.extent * run * target.vector_bytes > lanes * target.cache_bytes[1]
    prefetch = large and problem.rows.extent >= FEW_ROWS and not reading.rhs
    return Tiling(lanes, columns, tiles, Reduction(1, run, 1, run), whole, groups, pack, Rhs.FOLDED, False, prefetch)


def columns_at_once(rows: int, lanes: int, registers: int) -> int:
    """Returns the number of columns of a tile of `Rhs.FOLDED`, a power of two: the sums take half of the registers."""
    return min(lanes, 1 << (registers // 2 // rows).bit_length() - 1)


def tiles_of(problem: Problem, lanes: int, registers: int, threads: int, wanted: int) -> tuple[Split, Split]:
    """Returns panels, of at most `wanted` vectors if that is not 0, and tiles. If lanes are read one by one, nothing is
    reused within a tile: it then has few rows, whose addresses fit in registers, and is wide."""
    rows, vectors = problem.rows.extent, math.ceil(problem.columns.extent / lanes)
    if problem.elementwise:
        panels = split(vectors, 6 if registers >= 32 else 3)
        return panels, split(rows, 3 if panels.size > 4 else 4)
    widest = max(USUAL_PANEL, -(-vectors // threads)) if rows == 1 else USUAL_PANEL
    most = min(wanted, (registers - 2) // 2)  # beside them fits at least one row
    count = split(vectors, most or widest_panel(rows, registers, widest)).count
    panels = Split(vectors, min(vectors, -(-count // threads) * threads) if rows == 1 else count)
    return panels, split(rows, rows_that_fit(panels.size, registers))


def _rhs(problem: Problem, element_bytes: int, target: Target, tiles: Split, converted: bool, in_blocks: bool) -> Rhs:
    """Returns where to read an rhs that is not constant. One that is converted is read in place by a single tile only:
    several would convert it several times. `in_blocks`: the reduction is in short blocks."""
    step = rhs_step(problem) * element_bytes
    whole = problem.columns.extent % (target.vector_bytes // element_bytes) == 0
    most = 1 if converted else _most_tiles_in_place(problem, step, target, in_blocks)
    if 0 < step <= LONGEST_STEP and whole and tiles.count <= most:
        return Rhs.IN_PLACE
    across = lies_across(problem.rhs, problem.reduction, problem.columns)
    once = tiles.count == 1 and not problem.elementwise and not across
    return Rhs.DIRECT if once else Rhs.PACKED


def _most_tiles_in_place(problem: Problem, step: int, target: Target, in_blocks: bool) -> float:
    """Returns the number of tiles up to which a panel is read in place. Its rows, `step` bytes apart, fall on as few
    sets of a cache as if they filled the memory that they are spread over."""
    near, cache = target.cache_bytes[:2]
    spread = step * problem.reduction.extent
    if problem.elementwise or spread <= near:
        return math.inf
    if in_blocks:
        return MOST_IN_BLOCKS
    return MOST_NEAR if spread < SPREAD_SHARE * cache else MOST_FAR


def units_of(
    reduction: Reduction, panels: Split, tiles: Split, most_sums: int, most_rows: int, most_panels: int
) -> tuple[Split, Split]:
    """Returns chunks and groups. All rows with one panel, so that packed rhs serves them all; with several panels, so
    that packed lhs does; and if the reduction is in blocks, as many of both as there is space for their sums."""
    if reduction.blocks > 1:
        most_rows = min(most_rows, tiles.extent, most_sums)
        most_panels = max(1, most_sums // most_rows)
    most_tiles = tiles.count if most_rows >= tiles.extent else max(1, most_rows // tiles.size)
    return split(tiles.count, most_tiles), split(panels.count, most_panels)


def moved(problem: Problem) -> int:
    """Returns the elements that threads which share out columns take from one another: those of lhs, and of the result,
    which the next kernel reads by rows."""
    return problem.rows.extent * (problem.reduction.extent + problem.columns.extent)


def shared_out(chunks: Split, groups: Split, batch: int, wanted: int, rows_first: bool) -> tuple[Split, Split]:
    """Returns more units, up to `wanted`, so that every thread has some: either panels are separated first, then rows,
    or the other way round."""
    outer, inner = (chunks, groups) if rows_first else (groups, chunks)
    while batch * outer.count * inner.count < wanted:
        if outer.count < outer.extent:
            outer = _finer(outer)
        elif inner.count < inner.extent:
            inner = _finer(inner)
        else:
            break
    return (outer, inner) if rows_first else (inner, outer)


def _finer(parts: Split) -> Split:
    return Split(parts.extent, min(parts.extent, 2 * parts.count))


def rhs_step(problem: Problem) -> int:
    """Returns the number of elements from one row of rhs to the next if rows are contiguous and evenly spaced through
    the whole reduction; otherwise 0."""
    reduction, columns, rhs = problem.reduction.axes, problem.columns.axes, problem.rhs
    if rhs.windows or len(columns) != 1 or rhs.stride(columns[0]) != 1 or not reduction:
        return 0
    step = run = rhs.stride(reduction[-1])
    for axis in reversed(reduction):
        if rhs.stride(axis) != run:
            return 0
        run *= axis.extent
    return step


def blocks_of(group: AxisGroup, taps: int, run: int, most_steps: int, multiple: int) -> Reduction:
    """Returns even blocks of at most about `most_steps` steps. Parts of a run begin where the faster axes of the
    reduction start again, or else at multiples of `multiple` steps."""
    if run <= most_steps:
        return Reduction(taps, run, split(taps, max(1, most_steps // run)).size, run)
    steps = split(run, most_steps).size
    period = _period(group, steps)
    period = multiple if period == 1 else period
    return Reduction(taps, run, 1, min(run, -(-steps // period) * period))


def run_of(reduction: AxisGroup, lhs: Access) -> int:
    """Returns the number of steps of the reduction along which lhs advances evenly, apart from its windows."""
    if not reduction.axes:
        return 1
    run, step = 1, lhs.stride(reduction.axes[-1])
    for axis in reversed(reduction.axes):
        if lhs.windowed(axis) or lhs.stride(axis) != step * run:
            break
        run *= axis.extent
    return run


def _period(reduction: AxisGroup, most: int) -> int:
    """Returns the number of steps after which the faster axes of the reduction start again, so that blocks can start
    there too."""
    period = 1
    for axis in reversed(reduction.axes[1:]):
        if period * axis.extent > most:
            break
        period *= axis.extent
    return period
