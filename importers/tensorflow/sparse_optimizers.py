"""The ops of optimizers for gradients of some rows, such as those of an embedding: each row is changed by the rule of
the op for whole gradients, one after the other, as a row may occur more than once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from trivium.importers.tensorflow import optimizers
from trivium.importers.tensorflow.context import Context, Operand, rule
from trivium.importers.tensorflow.state import State, Variable, read_value, variable_of
from trivium.ir import ops
from trivium.ir.core import Value
from trivium.ir.types import I64, TensorType

WHOLE = {
    "ResourceSparseApplyAdadelta": optimizers.apply_adadelta,
    "ResourceSparseApplyAdagrad": optimizers.apply_first_adagrad,
    "ResourceSparseApplyAdagradDA": optimizers.apply_adagrad_da,
    "ResourceSparseApplyAdagradV2": optimizers.apply_adagrad,
    "ResourceSparseApplyCenteredRMSProp": optimizers.apply_centered_rms_prop,
    "ResourceSparseApplyFtrl": optimizers.apply_ftrl,
    "ResourceSparseApplyFtrlV2": optimizers.apply_ftrl_v2,
    "ResourceSparseApplyKerasMomentum": optimizers.apply_keras_momentum,
    "ResourceSparseApplyMomentum": optimizers.apply_momentum,
    "ResourceSparseApplyProximalAdagrad": optimizers.apply_proximal_adagrad,
    "ResourceSparseApplyProximalGradientDescent": optimizers.apply_proximal_gradient_descent,
    "ResourceSparseApplyRMSProp": optimizers.apply_rms_prop,
}
"""The rules for whole gradients, whose inputs are the same ones, without the indices of rows."""


def _by_rows(whole: Callable[..., None]) -> Callable[..., None]:
    """Returns the rule for gradients of some rows: its inputs are those of another rule, with the indices of the rows
    after the gradient."""
    signature = inspect.signature(whole)
    inputs = [x for x in signature.parameters.values() if x.kind is x.POSITIONAL_OR_KEYWORD]
    options = [x for x in signature.parameters.values() if x.kind is x.KEYWORD_ONLY]
    names = ["grad" if x.name == "delta" else x.name for x in inputs[1:]]
    place = names.index("grad")

    def computed(ctx: Context, *operands: Operand, **flags: bool) -> None:
        given = dict(zip(names, [*operands[: place + 1], *operands[place + 2 :]], strict=True))
        gradient, indices = ctx.value(operands[place]), ctx.value(operands[place + 1])
        _update_rows(ctx, lambda emit, *inputs: whole(emit, *inputs, **flags), given, gradient, indices)

    def parameter(name: str, annotation: str) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)

    inputs = [x.replace(name=name) for x, name in zip(inputs, ["ctx", *names], strict=True)]
    inputs.insert(place + 2, parameter("indices", "Value"))
    computed.__signature__ = signature.replace(parameters=[*inputs, *options])  # type: ignore[attr-defined]
    return computed


def _update_rows(
    ctx: Context, whole: Callable[..., None], given: dict[str, Operand], gradient: Value, indices: Value
) -> None:
    """Changes rows of the variables among the inputs. Rows that there are not are ignored."""
    held = {name: variable_of(ctx, x) for name, x in given.items() if isinstance(x, Variable)}
    rows = {
        name: Variable(x.name, TensorType(x.type.shape[1:], x.type.element_type), x.role) for name, x in held.items()
    }
    count, extent = gradient.type.static_shape[0], next(iter(held.values())).type.static_shape[0]
    places = ctx.convert(indices, I64)
    start = [ctx.scalar(0, I64), *(read_value(ctx, x) for x in held.values())]
    types = [x.type for x in start]

    def goes_on(emit: Context, number: Value, *values: Value) -> Value:
        return emit.compare("LT", number, emit.scalar(count, I64))

    def step(emit: Context, number: Value, *values: Value) -> list[Value]:
        place = emit.reshape(_row(emit, places, number), ())
        above = emit.compare("GE", place, emit.scalar(0, I64))
        exists = emit.add(ops.And(above, emit.compare("LT", place, emit.scalar(extent, I64))))
        old = [_row(emit, x, place) for x in values]
        emit.node = ctx.node
        emit.state = State(dict(zip(rows.values(), old, strict=True)))
        inputs = given | rows | {"grad": _row(emit, gradient, number)}
        whole(emit, *inputs.values())
        changed = [emit.value(emit.state.values[x]) for x in rows.values()]
        kept = [emit.select(exists, new, before) for new, before in zip(changed, old, strict=True)]
        return [
            emit.plus(number, emit.scalar(1, I64)),
            *(_with_row(emit, x, row, place) for x, row in zip(values, kept, strict=True)),
        ]

    loop = ops.While(start, cond=ctx.region(types, goes_on), body=ctx.region(types, step))
    for variable, value in zip(held.values(), ctx.add(loop)[1:], strict=True):
        ctx.state.write(variable, value)


def _row(ctx: Context, x: Value, place: Value) -> Value:
    sizes = (1, *x.type.static_shape[1:])
    return ctx.squeeze(ctx.add(ops.DynamicSlice(x, _starts(ctx, x, place), slice_sizes=sizes)), [0])


def _with_row(ctx: Context, x: Value, row: Value, place: Value) -> Value:
    return ctx.add(ops.DynamicUpdateSlice(x, ctx.unsqueeze(row, [0]), _starts(ctx, x, place)))


def _starts(ctx: Context, x: Value, place: Value) -> Sequence[Value]:
    return [place, *[ctx.scalar(0, I64)] * (x.type.rank - 1)]


for _name, _whole in WHOLE.items():
    rule.add(_name, _by_rows(_whole))
