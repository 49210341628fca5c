"""Connectionist temporal classification. The likelihood of a sequence of labels is a sum over its alignments with the
steps of the input; a label may come at several steps, and blanks lie between labels. One pass over the steps computes
it, and for the gradient another one in the other direction."""

from __future__ import annotations

from collections.abc import Sequence

from trivium.importers import loops
from trivium.importers.pytorch.context import Context, rule
from trivium.importers.pytorch.indexing import gather, scatter_into
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64, ElementType, TensorType

INFINITY = float("inf")


class Alignments:
    """A batch of label sequences as positions that an alignment passes through, in order: blank, label, blank, ...,
    blank. Arrays have the dimensions step, sequence, position."""

    def __init__(
        self,
        ctx: Context,
        log_probs: Value,
        targets: Value,
        input_lengths: Value,
        target_lengths: Value,
        blank: int,
    ):
        self.kind: ElementType = log_probs.type.element_type
        self.steps, self.count, _ = log_probs.type.static_shape
        longest = targets.type.static_shape[-1]  # at most
        self.width = 2 * longest + 1
        self.input_lengths, lengths = (ctx.convert(given, I64) for given in (input_lengths, target_lengths))
        self.last = ctx.unsqueeze(ctx.plus(lengths, lengths), [1])
        """The position of the last blank."""
        self.place = ctx.iota((self.count, self.width), 1)
        self.labels = self._labels(ctx, _padded(ctx, targets, lengths, longest), blank)
        indices = ctx.broadcast(self.labels, (self.steps, self.count, self.width))
        self.emitted = gather(ctx, log_probs, 2, indices)
        self.skips = ctx.compare("NE", self.labels, self.shifted(ctx, self.labels, 2, blank))
        """Whether a position may follow the one two before it, which has another label."""

    def _labels(self, ctx: Context, targets: Value, blank: int) -> Value:
        one = ctx.unsqueeze(targets, [2])
        pairs = ctx.concatenate([ctx.full_like(one, blank), one], 2)
        flat = ctx.reshape(pairs, (self.count, self.width - 1))
        labels = ctx.pad(flat, [0, 0], [0, 1], blank)
        inside = ctx.compare("LT", self.place, self.last)
        return ctx.select(inside, labels, ctx.full_like(labels, blank))

    def shifted(self, ctx: Context, x: Value, by: int, fill: float) -> Value:
        """Returns what is `by` positions before, or, if it is negative, after each one."""
        return ctx.pad(x, [0, by], [0, -by], fill) if by <= self.width else ctx.full_like(x, fill)

    def advanced(self, ctx: Context, before: Value, direction: int) -> Value:
        """Returns the logarithms of the sums over the positions that an alignment may come from."""
        skips = self.skips if direction > 0 else self.shifted(ctx, self.skips, -2, False)
        none = ctx.full_like(before, -INFINITY)
        far = ctx.select(skips, self.shifted(ctx, before, 2 * direction, -INFINITY), none)
        return _log_sum(ctx, [before, self.shifted(ctx, before, direction, -INFINITY), far])

    def run(self, ctx: Context, starts: Value, begins: Value | None) -> Value:
        """Returns for each step and position the logarithm of the sum over all alignments up to there: from the first
        step on, or backwards from where a sequence `begins`, at the positions where it `starts`."""
        emitted, none = self.emitted, ctx.full((self.count, self.width), -INFINITY, self.kind)

        def step(ctx: Context, state: Sequence[Value], row: Sequence[Value]) -> list[Value]:
            now, emitted = row
            first = ctx.compare("EQ", now, ctx.scalar(0, I64)) if begins is None else _at(ctx, begins, now)
            before = ctx.select(first, starts, self.advanced(ctx, state[0], 1 if begins is None else -1))
            reached = ctx.plus(before, emitted)
            return [reached, reached]

        rows = [ctx.iota((self.steps,), 0), emitted]
        collected = [TensorType((self.steps, self.count, self.width), self.kind)]
        return loops.scan(ctx, step, [none], rows, collected, self.steps, reverse=begins is not None)[1]

    def forwards(self, ctx: Context) -> Value:
        """Starts at the first blank or label."""
        first = ctx.compare("LE", self.place, ctx.binary(ops.Minimum, self.last, ctx.scalar(1, I64)))
        return self.run(ctx, _log_of(ctx, first, self.kind), None)

    def backwards(self, ctx: Context) -> Value:
        """Starts at the last blank or label."""
        return self.run(ctx, _log_of(ctx, self.ends(ctx), self.kind), self.input_lengths)

    def ends(self, ctx: Context) -> Value:
        """Whether an alignment may end at a position."""
        one = ctx.scalar(1, I64)
        late = ctx.compare("GE", self.place, ctx.minus(self.last, one))
        return ctx.binary(ops.And, late, ctx.compare("LE", self.place, self.last))


def _at(ctx: Context, lengths: Value, now: Value) -> Value:
    """Whether this is the last step of each sequence."""
    return ctx.unsqueeze(ctx.compare("EQ", ctx.plus(now, ctx.scalar(1, I64)), lengths), [1])


def _padded(ctx: Context, targets: Value, lengths: Value, longest: int) -> Value:
    """Returns a row of labels for each sequence; targets may be those of all sequences, one after another."""
    targets = ctx.convert(targets, I64)
    if targets.type.rank == 2:
        return ctx.slice(targets, 1, 0, longest)
    (count,) = lengths.type.static_shape
    if not targets.type.size:
        return ctx.full((count, longest), 0, I64)
    begins = ctx.minus(ctx.cumulative(ops.Add, lengths, 0), lengths)
    places = ctx.plus(ctx.unsqueeze(begins, [1]), ctx.iota((count, longest), 1))
    return ctx.take(targets, ctx.binary(ops.Minimum, places, ctx.scalar(targets.type.size - 1, I64)))


def _log_of(ctx: Context, holds: Value, kind: ElementType) -> Value:
    return ctx.select(holds, ctx.scalar(0, kind), ctx.scalar(-INFINITY, kind))


def _log_sum(ctx: Context, logs: Sequence[Value]) -> Value:
    """Returns the logarithm of the sum of numbers whose logarithms are given."""
    first, *rest = logs
    for each in rest:
        first = ctx.binary(ops.Maximum, first, each)
    highest = ctx.select(ctx.compare("EQ", first, ctx.full_like(first, -INFINITY)), ctx.full_like(first, 0), first)
    terms = [ctx.add(ops.Exponential(ctx.minus(each, highest))) for each in logs]
    total = terms[0]
    for term in terms[1:]:
        total = ctx.plus(total, term)
    return ctx.plus(ctx.add(ops.Log(total)), highest)


@rule("aten._ctc_loss.Tensor")
def ctc_loss(
    ctx: Context,
    log_probs: Value,
    targets: Value,
    input_lengths: Value,
    target_lengths: Value,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Value, Value]:
    """_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank=0, bool
    zero_infinity=False) -> (Tensor, Tensor): an infinite loss becomes 0 outside of it"""
    paths = Alignments(ctx, log_probs, targets, input_lengths, target_lengths, blank)
    alpha = paths.forwards(ctx)
    steps = ctx.iota((paths.steps, paths.count), 0)
    is_last = ctx.compare("EQ", ctx.plus(steps, ctx.scalar(1, I64)), paths.input_lengths)
    counted = ctx.binary(ops.And, ctx.unsqueeze(is_last, [2]), paths.ends(ctx))
    none = ctx.scalar(-INFINITY, paths.kind)
    found = ctx.select(counted, alpha, none)
    highest = ctx.reduce(ops.Maximum, found, [0, 2])
    highest = ctx.select(ctx.compare("EQ", highest, none), ctx.full_like(highest, 0), highest)
    total = ctx.reduce(ops.Add, ctx.add(ops.Exponential(ctx.minus(found, ctx.unsqueeze(highest, [0, 2])))), [0, 2])
    loss = ctx.add(ops.Negate(ctx.plus(ctx.add(ops.Log(total)), highest)))
    # Of no steps, no labels are certain.
    zero = ctx.scalar(0, I64)
    empty = ctx.binary(ops.Or, paths.input_lengths, ctx.reshape(paths.last, (paths.count,)))
    loss = ctx.select(ctx.compare("EQ", empty, zero), ctx.full_like(loss, 0), loss)
    return loss, ctx.transpose(alpha, [1, 0, 2])


@rule("aten._ctc_loss_backward.Tensor")
def ctc_loss_backward(
    ctx: Context,
    grad: Value,
    log_probs: Value,
    targets: Value,
    input_lengths: Value,
    target_lengths: Value,
    neg_log_likelihood: Value,
    log_alpha: Value,
    blank: int,
    zero_infinity: bool = False,
) -> Value:
    """_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor
    target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor"""
    paths = Alignments(ctx, log_probs, targets, input_lengths, target_lengths, blank)
    shape = log_probs.type.static_shape
    alpha, beta = ctx.transpose(log_alpha, [1, 0, 2]), paths.backwards(ctx)
    per_sequence = [ctx.broadcast_in_dim(x, (paths.count, 1), [0]) for x in (neg_log_likelihood, grad)]
    loss, grad = per_sequence
    shares = ctx.minus(ctx.plus(ctx.plus(alpha, beta), loss), paths.emitted)
    is_inside = ctx.compare("LE", paths.place, paths.last)
    shares = ctx.select(is_inside, ctx.add(ops.Exponential(shares)), ctx.full_like(shares, 0))
    labels = ctx.broadcast(paths.labels, shares.type.static_shape)
    taken = scatter_into(ctx, ops.Add, ctx.full(shape, 0, paths.kind), 2, labels, shares)
    found = ctx.times(ctx.minus(ctx.add(ops.Exponential(log_probs)), taken), grad)
    impossible = ctx.compare("EQ", loss, ctx.full_like(loss, INFINITY))
    found = ctx.select(impossible, ctx.scalar(0 if zero_infinity else float("nan"), paths.kind), found)
    steps = ctx.iota((*shape[:2], 1), 0)
    is_within = ctx.compare("LT", steps, ctx.unsqueeze(paths.input_lengths, [1]))
    return ctx.select(is_within, found, ctx.full_like(found, 0))
