"""The ops of optimizers: each changes a variable, and what the optimizer remembers of it, by a step."""

from __future__ import annotations

from trivium.importers.tensorflow.context import Context, Operand, rule
from trivium.importers.tensorflow.state import read_value, update
from trivium.ir import ops
from trivium.ir.core import Value


@rule("ResourceApplyGradientDescent")
def apply_gradient_descent(ctx: Context, var: Operand, alpha: Value, delta: Value) -> None:
    """ResourceApplyGradientDescent(var, alpha, delta)"""
    update(ctx, var, lambda old: ctx.minus(old, ctx.times(alpha, delta)))


@rule("ResourceApplyMomentum")
def apply_momentum(
    ctx: Context, var: Operand, accum: Operand, lr: Value, grad: Value, momentum: Value, *, use_nesterov: bool
) -> None:
    """ResourceApplyMomentum(var, accum, lr, grad, momentum; use_nesterov=false)"""
    speed = update(ctx, accum, lambda old: ctx.plus(ctx.times(old, momentum), grad))
    step = ctx.times(speed, lr)
    if use_nesterov:
        step = ctx.plus(ctx.times(grad, lr), ctx.times(ctx.times(speed, momentum), lr))
    update(ctx, var, lambda old: ctx.minus(old, step))


@rule("ResourceApplyKerasMomentum")
def apply_keras_momentum(
    ctx: Context, var: Operand, accum: Operand, lr: Value, grad: Value, momentum: Value, *, use_nesterov: bool
) -> None:
    """ResourceApplyKerasMomentum(var, accum, lr, grad, momentum; use_nesterov=false)"""
    step = ctx.times(lr, grad)
    speed = update(ctx, accum, lambda old: ctx.minus(ctx.times(old, momentum), step))
    if use_nesterov:
        speed = ctx.minus(ctx.times(speed, momentum), step)
    update(ctx, var, lambda old: ctx.plus(old, speed))


@rule("ResourceApplyAdam")
def apply_adam(
    ctx: Context,
    var: Operand,
    m: Operand,
    v: Operand,
    beta1_power: Value,
    beta2_power: Value,
    lr: Value,
    beta1: Value,
    beta2: Value,
    epsilon: Value,
    grad: Value,
    *,
    use_nesterov: bool,
) -> None:
    """ResourceApplyAdam(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad; use_nesterov=false)"""
    one, rate, square = ctx.constant_like(grad, 1), _adam_rate(ctx, lr, beta1_power, beta2_power), ctx.times(grad, grad)
    first = update(ctx, m, lambda old: _moving(ctx, old, grad, beta1))
    second = update(ctx, v, lambda old: _moving(ctx, old, square, beta2))
    if use_nesterov:
        first = ctx.plus(ctx.times(first, beta1), ctx.times(ctx.minus(one, beta1), grad))
    step = ctx.over(ctx.times(first, rate), ctx.plus(ctx.add(ops.Sqrt(second)), epsilon))
    update(ctx, var, lambda old: ctx.minus(old, step))


@rule("ResourceApplyAdamWithAmsgrad")
def apply_adam_with_amsgrad(
    ctx: Context,
    var: Operand,
    m: Operand,
    v: Operand,
    vhat: Operand,
    beta1_power: Value,
    beta2_power: Value,
    lr: Value,
    beta1: Value,
    beta2: Value,
    epsilon: Value,
    grad: Value,
) -> None:
    """ResourceApplyAdamWithAmsgrad(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)"""
    first = update(ctx, m, lambda old: _moving(ctx, old, grad, beta1))
    second = update(ctx, v, lambda old: _moving(ctx, old, ctx.times(grad, grad), beta2))
    largest = update(ctx, vhat, lambda old: ctx.binary(ops.Maximum, old, second))
    scaled = ctx.times(first, _adam_rate(ctx, lr, beta1_power, beta2_power))
    step = ctx.over(scaled, ctx.plus(ctx.add(ops.Sqrt(largest)), epsilon))
    update(ctx, var, lambda old: ctx.minus(old, step))


def _adam_rate(ctx: Context, lr: Value, beta1_power: Value, beta2_power: Value) -> Value:
    """Returns the learning rate, corrected for averages that begin with zero."""
    one = ctx.constant_like(lr, 1)
    return ctx.over(ctx.times(lr, ctx.add(ops.Sqrt(ctx.minus(one, beta2_power)))), ctx.minus(one, beta1_power))


@rule("ResourceApplyAdagradV2")
def apply_adagrad(
    ctx: Context, var: Operand, accum: Operand, lr: Value, epsilon: Value, grad: Value, *, update_slots: bool
) -> None:
    """ResourceApplyAdagradV2(var, accum, lr, epsilon, grad; update_slots=true)"""
    total = read_value(ctx, accum)
    if update_slots:
        total = update(ctx, accum, lambda old: ctx.plus(old, ctx.times(grad, grad)))
    step = ctx.over(ctx.times(grad, lr), ctx.plus(ctx.add(ops.Sqrt(total)), epsilon))
    update(ctx, var, lambda old: ctx.minus(old, step))


def _move_by_deviation(
    ctx: Context, var: Operand, mom: Operand, scaled: Value, variance: Value, momentum: Value
) -> None:
    """Moves a variable by a scaled gradient over the square root of its variance, with momentum."""
    step = ctx.over(scaled, ctx.add(ops.Sqrt(variance)))
    speed = update(ctx, mom, lambda old: ctx.plus(ctx.times(old, momentum), step))
    update(ctx, var, lambda old: ctx.minus(old, speed))


@rule("ResourceApplyRMSProp")
def apply_rms_prop(
    ctx: Context,
    var: Operand,
    ms: Operand,
    mom: Operand,
    lr: Value,
    rho: Value,
    momentum: Value,
    epsilon: Value,
    grad: Value,
) -> None:
    """ResourceApplyRMSProp(var, ms, mom, lr, rho, momentum, epsilon, grad)"""
    square = update(ctx, ms, lambda old: _moving(ctx, old, ctx.times(grad, grad), rho))
    _move_by_deviation(ctx, var, mom, ctx.times(grad, lr), ctx.plus(square, epsilon), momentum)


@rule("ResourceApplyAdagrad")
def apply_first_adagrad(
    ctx: Context, var: Operand, accum: Operand, lr: Value, grad: Value, *, update_slots: bool
) -> None:
    """ResourceApplyAdagrad(var, accum, lr, grad; update_slots=true)"""
    total = read_value(ctx, accum)
    if update_slots:
        total = update(ctx, accum, lambda old: ctx.plus(old, ctx.times(grad, grad)))
    update(ctx, var, lambda old: ctx.minus(old, ctx.times(ctx.times(grad, lr), ctx.add(ops.Rsqrt(total)))))


@rule("ResourceApplyAdadelta")
def apply_adadelta(
    ctx: Context,
    var: Operand,
    accum: Operand,
    accum_update: Operand,
    lr: Value,
    rho: Value,
    epsilon: Value,
    grad: Value,
) -> None:
    """ResourceApplyAdadelta(var, accum, accum_update, lr, rho, epsilon, grad)"""
    square = update(ctx, accum, lambda old: _weighted(ctx, old, ctx.times(grad, grad), rho))
    before = ctx.add(ops.Sqrt(ctx.plus(read_value(ctx, accum_update), epsilon)))
    step = ctx.times(ctx.times(before, ctx.add(ops.Rsqrt(ctx.plus(square, epsilon)))), grad)
    update(ctx, var, lambda old: ctx.minus(old, ctx.times(step, lr)))
    update(ctx, accum_update, lambda old: _weighted(ctx, old, ctx.times(step, step), rho))


@rule("ResourceApplyAdaMax")
def apply_ada_max(
    ctx: Context,
    var: Operand,
    m: Operand,
    v: Operand,
    beta1_power: Value,
    lr: Value,
    beta1: Value,
    beta2: Value,
    epsilon: Value,
    grad: Value,
) -> None:
    """ResourceApplyAdaMax(var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad)"""
    first = update(ctx, m, lambda old: _moving(ctx, old, grad, beta1))
    largest = update(ctx, v, lambda old: ctx.binary(ops.Maximum, ctx.times(beta2, old), ctx.add(ops.Abs(grad))))
    rate = ctx.over(lr, ctx.minus(ctx.constant_like(grad, 1), beta1_power))
    step = ctx.times(rate, ctx.over(first, ctx.plus(largest, epsilon)))
    update(ctx, var, lambda old: ctx.minus(old, step))


@rule("ResourceApplyAdagradDA")
def apply_adagrad_da(
    ctx: Context,
    var: Operand,
    gradient_accumulator: Operand,
    gradient_squared_accumulator: Operand,
    grad: Value,
    lr: Value,
    l1: Value,
    l2: Value,
    global_step: Value,
) -> None:
    """ResourceApplyAdagradDA(var, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step)"""
    steps = ctx.convert(global_step, grad.type.element_type)
    total = update(ctx, gradient_accumulator, lambda old: ctx.plus(old, grad))
    squares = update(ctx, gradient_squared_accumulator, lambda old: ctx.plus(old, ctx.times(grad, grad)))
    above = ctx.times(ctx.add(ops.Negate(lr)), _shrunk(ctx, total, ctx.times(l1, steps)))
    below = ctx.plus(ctx.times(ctx.times(l2, steps), lr), ctx.add(ops.Sqrt(squares)))
    update(ctx, var, lambda old: ctx.over(above, below))


@rule("ResourceApplyAddSign")
def apply_add_sign(
    ctx: Context, var: Operand, m: Operand, lr: Value, alpha: Value, sign_decay: Value, beta: Value, grad: Value
) -> None:
    """ResourceApplyAddSign(var, m, lr, alpha, sign_decay, beta, grad)"""
    scale = ctx.plus(alpha, ctx.times(sign_decay, _agreement(ctx, m, beta, grad)))
    update(ctx, var, lambda old: ctx.minus(old, ctx.times(ctx.times(lr, scale), grad)))


@rule("ResourceApplyPowerSign")
def apply_power_sign(
    ctx: Context, var: Operand, m: Operand, lr: Value, logbase: Value, sign_decay: Value, beta: Value, grad: Value
) -> None:
    """ResourceApplyPowerSign(var, m, lr, logbase, sign_decay, beta, grad)"""
    agreement = _agreement(ctx, m, beta, grad)
    scale = ctx.add(ops.Exponential(ctx.times(ctx.times(logbase, sign_decay), agreement)))
    update(ctx, var, lambda old: ctx.minus(old, ctx.times(ctx.times(lr, scale), grad)))


@rule("ResourceApplyCenteredRMSProp")
def apply_centered_rms_prop(
    ctx: Context,
    var: Operand,
    mg: Operand,
    ms: Operand,
    mom: Operand,
    lr: Value,
    rho: Value,
    momentum: Value,
    epsilon: Value,
    grad: Value,
) -> None:
    """ResourceApplyCenteredRMSProp(var, mg, ms, mom, lr, rho, momentum, epsilon, grad)"""
    square = update(ctx, ms, lambda old: _moving(ctx, old, ctx.times(grad, grad), rho))
    mean = update(ctx, mg, lambda old: _moving(ctx, old, grad, rho))
    variance = ctx.plus(ctx.minus(square, ctx.times(mean, mean)), epsilon)
    _move_by_deviation(ctx, var, mom, ctx.times(grad, lr), variance, momentum)


@rule("ResourceApplyFtrl")
def apply_ftrl(
    ctx: Context,
    var: Operand,
    accum: Operand,
    linear: Operand,
    grad: Value,
    lr: Value,
    l1: Value,
    l2: Value,
    lr_power: Value,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    """ResourceApplyFtrl(var, accum, linear, grad, lr, l1, l2, lr_power; multiply_linear_by_lr=false)"""
    _ftrl(ctx, (var, accum, linear), (grad, grad), (lr, l1, l2, lr_power), multiply_linear_by_lr)


@rule("ResourceApplyFtrlV2")
def apply_ftrl_v2(
    ctx: Context,
    var: Operand,
    accum: Operand,
    linear: Operand,
    grad: Value,
    lr: Value,
    l1: Value,
    l2: Value,
    l2_shrinkage: Value,
    lr_power: Value,
    *,
    multiply_linear_by_lr: bool,
) -> None:
    """ResourceApplyFtrlV2(var, accum, linear, grad, lr, l1, l2, l2_shrinkage, lr_power; multiply_linear_by_lr=false)"""
    shrinking = ctx.times(ctx.scaled(l2_shrinkage, 2), read_value(ctx, var))
    _ftrl(ctx, (var, accum, linear), (grad, ctx.plus(grad, shrinking)), (lr, l1, l2, lr_power), multiply_linear_by_lr)


def _ftrl(
    ctx: Context,
    variables: tuple[Operand, Operand, Operand],
    gradients: tuple[Value, Value],
    numbers: tuple[Value, Value, Value, Value],
    multiplied: bool,
) -> None:
    """The step of FTRL-proximal; of the gradients, the first is accumulated and the second followed."""
    (var, accum, linear), (grad, followed), (lr, l1, l2, lr_power) = variables, gradients, numbers
    old = read_value(ctx, accum)
    new = update(ctx, accum, lambda old: ctx.plus(old, ctx.times(grad, grad)))
    after, before = (_power(ctx, x, lr_power) for x in (new, old))
    growth, curvature, bound = ctx.minus(after, before), after, l1
    if multiplied:
        followed, l2, bound = ctx.times(followed, lr), ctx.times(l2, lr), ctx.times(l1, lr)
    else:
        growth, curvature = ctx.over(growth, lr), ctx.over(curvature, lr)
    pulled = ctx.minus(followed, ctx.times(growth, read_value(ctx, var)))
    total = update(ctx, linear, lambda old: ctx.plus(old, pulled))
    quadratic = ctx.plus(curvature, ctx.scaled(l2, 2))
    # Where the accumulator is negative, its power is NaN, and the weight zero.
    is_beyond = ctx.compare("GT", ctx.add(ops.Abs(total)), bound)
    moved = ctx.over(ctx.minus(ctx.times(bound, ctx.add(ops.Sign(total))), total), quadratic)
    update(ctx, var, lambda old: ctx.select(is_beyond, moved, ctx.constant_like(old, 0)))


def _power(ctx: Context, x: Value, lr_power: Value) -> Value:
    """Returns `x ** -lr_power`; a square root is rounded as one."""
    is_root = ctx.compare("EQ", lr_power, ctx.constant_like(lr_power, -0.5))
    return ctx.select(is_root, ctx.add(ops.Sqrt(x)), ctx.binary(ops.Power, x, ctx.add(ops.Negate(lr_power))))


@rule("ResourceApplyProximalGradientDescent")
def apply_proximal_gradient_descent(
    ctx: Context, var: Operand, alpha: Value, l1: Value, l2: Value, delta: Value
) -> None:
    """ResourceApplyProximalGradientDescent(var, alpha, l1, l2, delta)"""
    update(ctx, var, lambda old: _proximal(ctx, old, delta, alpha, l1, l2))


@rule("ResourceApplyProximalAdagrad")
def apply_proximal_adagrad(
    ctx: Context, var: Operand, accum: Operand, lr: Value, l1: Value, l2: Value, grad: Value
) -> None:
    """ResourceApplyProximalAdagrad(var, accum, lr, l1, l2, grad)"""
    total = update(ctx, accum, lambda old: ctx.plus(old, ctx.times(grad, grad)))
    rate = ctx.times(lr, ctx.add(ops.Rsqrt(total)))
    update(ctx, var, lambda old: _proximal(ctx, old, grad, rate, l1, l2))


def _proximal(ctx: Context, old: Value, grad: Value, rate: Value, l1: Value, l2: Value) -> Value:
    """Returns a value after a step, drawn towards zero."""
    moved = _shrunk(ctx, ctx.minus(old, ctx.times(grad, rate)), ctx.times(rate, l1))
    return ctx.over(moved, ctx.plus(ctx.constant_like(old, 1), ctx.times(l2, rate)))


def _shrunk(ctx: Context, x: Value, by: Value) -> Value:
    """Returns `x`, nearer to zero by a number, at most to zero."""
    rest = ctx.binary(ops.Maximum, ctx.minus(ctx.add(ops.Abs(x)), by), ctx.constant_like(x, 0))
    return ctx.times(ctx.add(ops.Sign(x)), rest)


def _agreement(ctx: Context, m: Operand, beta: Value, grad: Value) -> Value:
    """Returns the product of the signs of the gradient and of its moving average."""
    mean = update(ctx, m, lambda old: _weighted(ctx, old, grad, beta))
    return ctx.times(ctx.add(ops.Sign(grad)), ctx.add(ops.Sign(mean)))


def _weighted(ctx: Context, old: Value, new: Value, decay: Value) -> Value:
    """Returns `decay * old + (1 - decay) * new`."""
    return ctx.plus(ctx.times(old, decay), ctx.times(new, ctx.minus(ctx.constant_like(new, 1), decay)))


def _moving(ctx: Context, old: Value, new: Value, decay: Value) -> Value:
    """Returns `decay * old + (1 - decay) * new`, rounded as in TensorFlow."""
    return ctx.plus(old, ctx.times(ctx.minus(new, old), ctx.minus(ctx.constant_like(new, 1), decay)))
