"""Connectionist temporal classification, Graves et al. (ICML 2006): its loss, with the gradient, and the labels of the
likeliest path."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trivium.importers import loops
from trivium.importers.tensorflow.context import Context, Operand, rule
from trivium.importers.tensorflow.counted import existing_rows
from trivium.importers.tensorflow.indexing import gathered, scattered
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I1, I32, I64, TensorType


@rule("CTCGreedyDecoder")
def greedy_decoder(
    ctx: Context, inputs: Value, sequence_length: Value, *, merge_repeated: bool, blank_index: int
) -> Sequence[Operand]:
    """CTCGreedyDecoder(inputs, sequence_length; merge_repeated=false, blank_index=-1) -> decoded_indices,
    decoded_values, decoded_shape, log_probability"""
    time, batch, classes = inputs.type.static_shape
    blank = blank_index % classes if -classes <= blank_index < classes else None
    if blank is None:
        ctx.unsupported("blank_index", blank_index, f"a number from {-classes} to {classes - 1}")
    rows = ctx.transpose(inputs, [1, 0, 2])
    # TensorFlow's kernel keeps a NaN at the first place, and passes over others.
    lowest = ctx.full_like(rows, -math.inf)
    first = ctx.slice(rows, 2, 0, 1)
    is_stuck = ctx.squeeze(ctx.compare("NE", first, first), [2])
    best, at = ctx.arg_reduce("GT", ctx.select(ctx.compare("NE", rows, rows), lowest, rows), 2)
    best = ctx.select(is_stuck, ctx.squeeze(first, [2]), best)
    at = ctx.select(is_stuck, ctx.full_like(at, 0), at)
    is_step = ctx.compare("LT", ctx.iota((batch, time), 1, I32), ctx.unsqueeze(sequence_length, [1]))
    scores = ctx.reduce(ops.Add, ctx.select(is_step, best, ctx.full_like(best, 0)), [1], keep=True)
    kept = ctx.binary(ops.And, is_step, ctx.compare("NE", at, ctx.scalar(blank, I64)))
    if merge_repeated:
        kept = ctx.binary(ops.And, kept, ctx.compare("NE", at, ctx.pad(at, [0, 1], [0, -1], -1)))
    place = ctx.minus(ctx.cumulative(ops.Add, ctx.convert(kept, I64), 1), ctx.scalar(1, I64))
    longest = ctx.plus(ctx.reduce(ops.Maximum, place, [0, 1], init=-1), ctx.scalar(1, I64))
    shape = ctx.concatenate([ctx.full((1,), batch, I64), ctx.reshape(longest, (1,))], 0)
    lists = [ctx.reshape(x, (batch * time,)) for x in (kept, ctx.iota((batch, time), 0), place, at)]
    _, row, place, at = ctx.sort([ctx.add(ops.Not(lists[0])), *lists[1:]], 0)
    indices = ctx.concatenate([ctx.unsqueeze(x, [1]) for x in (row, place)], 1)
    number = ctx.reduce(ops.Add, ctx.convert(lists[0], I64), [0])
    found = [existing_rows(ctx, x, number) for x in (indices, at)]
    return [*found, shape, ctx.add(ops.Negate(scores))]


@rule("CTCLoss")
def ctc_loss(
    ctx: Context,
    inputs: Value,
    labels_indices: Value,
    labels_values: Value,
    sequence_length: Value,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> list[Value]:
    """CTCLoss(inputs, labels_indices, labels_values, sequence_length; preprocess_collapse_repeated=false,
    ctc_merge_repeated=true, ignore_longer_outputs_than_inputs=false) -> loss, gradient. Where TensorFlow's kernel
    reports that a sequence is shorter than its labels, the loss is NaN."""
    time, batch, classes = inputs.type.static_shape
    kind = inputs.type.element_type
    labels = _Labels(ctx, labels_indices, labels_values, inputs, preprocess_collapse_repeated)
    lattice = _Lattice(ctx, labels, inputs, sequence_length, ctc_merge_repeated)
    after = lattice.after()
    logs = _log_sum_over(ctx, ctx.plus(lattice.first(), ctx.squeeze(ctx.slice(after, 0, 0, 1), [0])), 1)
    loss = ctx.add(ops.Negate(logs))
    paths = ctx.plus(lattice.before(), after)
    is_possible = ctx.compare("GT", logs, ctx.constant_like(logs, -math.inf))
    by = ctx.select(is_possible, logs, ctx.full_like(logs, 0))
    weights = ctx.add(ops.Exponential(ctx.minus(paths, ctx.unsqueeze(by, [0, 2]))))
    one_hot = ctx.compare("EQ", ctx.unsqueeze(labels.path, [2]), ctx.iota((1, 1, classes), 2, I32))
    spent = ctx.dot(weights, ctx.convert(one_hot, kind), ([2], [1]), ([1], [0]))
    spent = ctx.transpose(spent, [1, 0, 2])
    gradient = ctx.minus(lattice.shares, spent)
    is_too_long = ctx.compare("GT", labels.given, sequence_length)
    is_used = ctx.compare("GT", sequence_length, ctx.scalar(0, I32))
    if ignore_longer_outputs_than_inputs:
        is_used = ctx.binary(ops.And, is_used, ctx.add(ops.Not(is_too_long)))
    else:
        loss = ctx.select(is_too_long, ctx.full_like(loss, math.nan), loss)
    in_time = ctx.compare("LT", ctx.iota((time, batch), 0, I32), ctx.unsqueeze(sequence_length, [0]))
    is_kept = ctx.unsqueeze(ctx.binary(ops.And, in_time, ctx.unsqueeze(is_used, [0])), [2])
    zero = ctx.constant_like(loss, 0)
    return [ctx.select(is_used, loss, zero), ctx.select(is_kept, gradient, zero)]


class _Labels:
    """The labels of each sequence, as many as it has steps: `given` is how many there are, `path` [batch, 2 steps + 1]
    has blanks around each, and `count` is the number of them that count, with the blanks."""

    def __init__(self, ctx: Context, indices: Value, values: Value, inputs: Value, collapse: bool):
        time, batch, classes = inputs.type.static_shape
        number = values.type.static_shape[0]
        row = ctx.squeeze(ctx.slice(indices, 1, 0, 1), [1])
        is_first = ctx.full((number,), True, I1) if not number else ctx.compare("NE", row, ctx.pad(row, [1], [-1], -1))
        is_real = ctx.compare("LT", values, ctx.scalar(classes - 1, I32))
        if collapse:
            differs = ctx.compare("NE", values, ctx.pad(values, [1], [-1], -1))
            is_real = ctx.binary(ops.And, is_real, ctx.binary(ops.Or, is_first, differs))
        places = ctx.unsqueeze(row, [1])
        nothing, one = ctx.full((batch,), 0, I32), ctx.full((number,), 1, I32)
        self.given = scattered(ctx, ops.Add, nothing, places, one)
        real = scattered(ctx, ops.Add, nothing, places, ctx.convert(is_real, I32))
        before = ctx.cumulative(ops.Add, real, 0, exclusive=True) if batch else real
        rank = ctx.cumulative(ops.Add, ctx.convert(is_real, I32), 0, exclusive=True)
        at = ctx.minus(rank, ctx.take(before, row))
        at = ctx.plus(ctx.scaled(at, 2), ctx.full_like(at, 1))
        # Those that do not count, and those beyond the number of steps, have no place.
        at = ctx.select(is_real, at, ctx.full_like(at, -1))
        blanks = ctx.full((batch, 2 * time + 1), classes - 1, I32)
        cells = ctx.concatenate([places, ctx.unsqueeze(ctx.convert(at, I64), [1])], 1)
        self.path = scattered(ctx, None, blanks, cells, values)
        self.count = ctx.plus(ctx.scaled(real, 2), ctx.full_like(real, 1))


class _Lattice:
    """The paths through labels and blanks, [steps, batch, 2 steps + 1], in logarithms."""

    def __init__(self, ctx: Context, labels: _Labels, inputs: Value, lengths: Value, merge: bool):
        self.ctx, self.labels, self.lengths = ctx, labels, lengths
        self.time, self.batch, classes = inputs.type.static_shape
        largest = ctx.reduce(ops.Maximum, inputs, [2], keep=True)
        powers = ctx.add(ops.Exponential(ctx.minus(inputs, largest)))
        self.shares = ctx.over(powers, ctx.reduce(ops.Add, powers, [2], keep=True))
        logs = ctx.transpose(ctx.add(ops.Log(self.shares)), [1, 2, 0])
        self.logs = ctx.transpose(gathered(ctx, logs, labels.path, 1, 1), [2, 0, 1])
        path = labels.path
        self.place = ctx.iota(path.type.static_shape, 1, I32)
        is_blank = ctx.compare("EQ", path, ctx.scalar(classes - 1, I32))
        skips = ctx.add(ops.Not(is_blank))
        differs = ctx.compare("NE", path, ctx.pad(path, [0, 2], [0, -2], -1))
        self.stays = ctx.full(path.type.static_shape, True, I1) if merge else is_blank
        self.skips = ctx.binary(ops.And, skips, differs) if merge else skips
        self.least = ctx.full(path.type.static_shape, -math.inf, inputs.type.element_type)

    def first(self) -> Value:
        """Returns the paths of one step: a blank, or the first label."""
        ctx = self.ctx
        logs = ctx.squeeze(ctx.slice(self.logs, 0, 0, 1), [0])
        is_start = ctx.compare("LT", self.place, ctx.binary(ops.Minimum, self._count(), ctx.scalar(2, I32)))
        return ctx.select(is_start, logs, self.least)

    def _count(self) -> Value:
        return self.ctx.unsqueeze(self.labels.count, [1])

    def before(self) -> Value:
        """Returns the paths that lead to each label at each step."""

        def step(emit: Context, state: Sequence[Value], rows: Sequence[Value]) -> list[Value]:
            (held,), (logs,) = state, rows
            options = [
                emit.select(self.stays, held, self.least),
                emit.pad(held, [0, 1], [0, -1], -math.inf),
                emit.select(self.skips, emit.pad(held, [0, 2], [0, -2], -math.inf), self.least),
            ]
            following = emit.plus(_log_sum(emit, options), logs)
            return [following, following]

        ctx = self.ctx
        first, rest = self.first(), ctx.slice(self.logs, 0, 1, self.time)
        made = TensorType((self.time - 1, *self.least.type.static_shape), self.least.type.element_type)
        later = loops.scan(ctx, step, [first], [rest], [made], self.time - 1)[1]
        return ctx.concatenate([ctx.unsqueeze(first, [0]), later], 0)

    def after(self) -> Value:
        """Returns the paths that lead from each label at each step to the end."""
        ctx = self.ctx
        last = ctx.minus(ctx.unsqueeze(self.lengths, [1]), ctx.scalar(1, I32))
        is_end = ctx.compare("GE", self.place, ctx.minus(self._count(), ctx.scalar(2, I32)))
        is_end = ctx.binary(ops.And, is_end, ctx.compare("LT", self.place, self._count()))
        ending = ctx.select(is_end, ctx.full_like(self.least, 0), self.least)
        leaves = ctx.pad(self.skips, [0, -2], [0, 2], False)

        def step(emit: Context, state: Sequence[Value], rows: Sequence[Value]) -> list[Value]:
            (held,), (logs, turn) = state, rows
            led = emit.plus(held, logs)
            options = [
                emit.select(self.stays, led, self.least),
                emit.pad(led, [0, -1], [0, 1], -math.inf),
                emit.select(leaves, emit.pad(led, [0, -2], [0, 2], -math.inf), self.least),
            ]
            found = emit.select(emit.compare("LT", turn, last), _log_sum(emit, options), self.least)
            found = emit.select(emit.compare("EQ", turn, last), ending, found)
            return [found, found]

        # The step after the last one leads nowhere.
        later = ctx.pad(ctx.slice(self.logs, 0, 1, self.time), [0, 0, 0], [1, 0, 0])
        made = TensorType((self.time, *self.least.type.static_shape), self.least.type.element_type)
        turns = ctx.iota((self.time,), 0, I32)
        return loops.scan(ctx, step, [self.least], [later, turns], [made], self.time, reverse=True)[1]


def _log_sum(ctx: Context, logs: Sequence[Value]) -> Value:
    """Returns the logarithm of a sum of numbers whose logarithms are given."""
    joined = ctx.concatenate([ctx.unsqueeze(x, [0]) for x in logs], 0)
    return _log_sum_over(ctx, joined, 0)


def _log_sum_over(ctx: Context, logs: Value, dimension: int) -> Value:
    largest = ctx.reduce(ops.Maximum, logs, [dimension])
    least = ctx.constant_like(logs, -math.inf)
    by = ctx.select(ctx.compare("EQ", largest, least), ctx.full_like(largest, 0), largest)
    powers = ctx.add(ops.Exponential(ctx.minus(logs, ctx.unsqueeze(by, [dimension]))))
    return ctx.plus(ctx.add(ops.Log(ctx.reduce(ops.Add, powers, [dimension]))), by)
