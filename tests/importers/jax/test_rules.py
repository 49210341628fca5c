"""Each rule against JAX itself: a function, its arguments, and the largest difference allowed (0: bit for bit)."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
from jax import lax

import trivium
from tests.importers.jax.comparing import RUNS, check

pytestmark = pytest.mark.jax


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def integers(*shape, low=-20, high=20, dtype=np.int32):
    return np.random.default_rng(1).integers(low, high, shape).astype(dtype)


X, Y, POSITIVE = floats(3, 4), floats(3, 4, seed=1), np.abs(floats(3, 4)) + 0.5
INTS, NATURALS = integers(3, 4), integers(3, 4, low=1, high=9)
UNIT = np.clip(floats(3, 4) / 4, -0.9, 0.9)
IMAGE, KERNEL = floats(2, 6, 6, 3), floats(3, 3, 3, 4)
NHWC = ("NHWC", "HWIO", "NHWC")
KEY = np.array([1, 2], np.uint32)


def scatter(mode, method="add"):
    def run(x):
        return getattr(x.at[jnp.array([0, 7, 1])], method)(2.0, mode=mode)

    return run


def scatter_windows(dtype):
    """One window reaches over the end, one begins before the start, one is inside."""
    numbers = lax.ScatterDimensionNumbers((1,), (), (0,))
    places = np.array([[11], [-2], [4]]).astype(dtype)
    return lambda x: lax.scatter_max(x.reshape(12), places, 5 + jnp.arange(6.0).reshape(3, 2), numbers)


UNARY = [
    *((f, X) for f in (jnp.abs, jnp.ceil, jnp.cos, jnp.cosh, jnp.exp, jnp.exp2, jnp.expm1, jnp.floor, jnp.isfinite)),
    *((f, X) for f in (jnp.negative, jnp.round, jnp.sign, jnp.sin, jnp.sinh, jnp.square, jnp.tan, jnp.tanh, lax.cbrt)),
    *((f, X) for f in (lax.erf, lax.erfc, jax.nn.sigmoid, jax.nn.gelu, jax.nn.relu, jax.nn.silu, jnp.arctan)),
    *((f, POSITIVE) for f in (jnp.log, jnp.log1p, jnp.sqrt, lax.rsqrt, lax.lgamma, lax.digamma)),
    *((f, UNIT) for f in (jnp.arccos, jnp.arcsin, jnp.arctanh, lax.erf_inv)),
    *((f, POSITIVE + 1) for f in (jnp.arccosh, jnp.arcsinh, lax.bessel_i1e)),
    *((f, INTS) for f in (jnp.abs, jnp.bitwise_not, lax.population_count, lax.clz, jnp.sign)),
    *((f, X + 1j * Y) for f in (jnp.abs, jnp.conj, jnp.real, jnp.imag, jnp.exp)),
]
BINARY = [
    *((f, X, Y) for f in (jnp.add, jnp.subtract, jnp.multiply, jnp.divide, jnp.maximum, jnp.minimum, jnp.arctan2)),
    *((f, X, Y) for f in (jnp.equal, jnp.not_equal, jnp.less, jnp.less_equal, jnp.greater, jnp.greater_equal)),
    *((f, X, Y) for f in (jnp.nextafter, jnp.fmod, jnp.remainder, lax.complex)),
    *((f, POSITIVE, Y) for f in (jnp.power, lax.zeta)),
    *(
        (f, INTS, NATURALS)
        for f in (jnp.add, jnp.multiply, jnp.floor_divide, jnp.remainder, jnp.bitwise_and, jnp.bitwise_xor)
    ),
    *((f, INTS, NATURALS) for f in (jnp.left_shift, jnp.right_shift, lax.shift_right_logical, jnp.power)),
    (lambda x, y: lax.polygamma(jnp.ones_like(x), y), X, POSITIVE),
]
SHAPE = [
    (lambda x: x.astype(jnp.int32), X),
    (lambda x: x.astype(jnp.bfloat16), X),
    (lambda x: x.astype(bool), X),
    (lambda x: lax.convert_element_type(x, bool), np.array([1j, 0, 1, 2 + 3j], np.complex64)),
    (lambda x: lax.bitcast_convert_type(x, jnp.uint32), X),
    (lambda x: lax.bitcast_convert_type(x, jnp.uint8), X),
    (lambda x: lax.reduce_precision(x, 5, 4), X),
    (lambda x: jnp.broadcast_to(x[:, None], (3, 2, 4)), X),
    (lambda x: x.reshape(2, 6), X),
    (lambda x: lax.reshape(x, (2, 6), dimensions=(1, 0)), X),
    (lambda x: x.T, X),
    (lambda x: jnp.tile(x, (2, 3)), X),
    (lambda x: jnp.unstack(x, axis=1), X),
    (lambda x, y: jnp.stack([x, y], 1), X, Y),
    (lambda x: x[::-1], X),
    (lambda x: x[1:, ::2], X),
    (lambda x, y: jnp.concatenate([x, y], 1), X, Y),
    (lambda x: lax.pad(x, 1.5, ((1, -1, 0), (0, 2, 1))), X),
    (lambda: jnp.arange(5, dtype=jnp.float32),),
    (lambda x: jnp.split(x, [1, 3], axis=1), X),
    (lambda x: jnp.clip(x, -0.5, 0.5), X),
    (lambda x, y: jnp.where(x > 0, x, y), X, Y),
    (lambda i, x, y: lax.select_n(i, x, y, x + y), integers(3, 4, low=0, high=3), X, Y),
    (lambda x: lax.integer_pow(x, -3), POSITIVE),
]
INDEXING = [
    (lambda x: x.at[jnp.array([0, 2, 2, 7])].apply(lambda y: jnp.sin(y) * 2 + 1), X),
    (lambda x: x.at[1:, 2].apply(lambda y: jnp.where(y > 0, -y, y / 3)), X),
    (lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)), X, np.int32(2)),
    (lambda x, i: lax.dynamic_update_slice(x, x[:2, :2] * 2, (i, 1)), X, np.int32(-2)),
    (lambda x: jnp.take(x, jnp.array([0, 5, 1]), axis=0), X),
    (lambda x: jnp.take(x, jnp.array([0, 5, 1]), axis=1, mode="clip"), X),
    (lambda x: x[jnp.array([0, 2]), jnp.array([1, 3])], X),
    (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), X),
    (lambda x: x.at[1].set(3.0), X),
    (scatter("drop"), X),
    (scatter("clip"), X),
    *((scatter_windows(dtype), X) for dtype in (np.int8, np.int32, np.uint32)),
    (jax.grad(lambda x: scatter_windows(np.int32)(x).sum()), X),
    (scatter("drop", "multiply"), X),
    (scatter("drop", "min"), X),
    (lambda x: jax.vmap(lambda row, i: row[i])(x, jnp.array([0, 3, 1])), X),
]
REDUCTION = [
    *((f, X) for f in (jnp.sum, jnp.prod, jnp.max, jnp.min, jnp.mean, jnp.var, jnp.argmax, jnp.argmin)),
    *((lambda x, f=f: f(x, axis=1), X) for f in (jnp.sum, jnp.max, jnp.cumsum, jnp.cumprod, jnp.argmin)),
    *((lambda x, f=f: f(x, axis=0, reverse=True), X) for f in (lax.cumsum, lax.cummax, lax.cummin, lax.cumlogsumexp)),
    (lambda x: jnp.any(x > 1), X),
    (lambda x: jnp.all(x > -9, axis=0), X),
    (lambda x: lax.reduce(x, np.float32(-np.inf), jnp.logaddexp, (1,)), X),
    (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME"), X),
    (lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), "VALID", window_dilation=(1, 2)), X),
    (jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") * 2).sum()), X),
    (lambda x: jax.jvp(lambda y: lax.reduce_window(y, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME"), (x,), (x,)), X),
    (lambda x: jnp.sort(x, axis=0), X),
    (lambda x: jnp.sort(x), np.array([0.0, -0.0, np.nan, -1.0, np.inf], np.float32)),
    (lambda x: jnp.lexsort((x, x > 0)), X),
    (lambda x, y: lax.sort(lax.complex(jnp.round(x), y), dimension=0), X, Y),
    (lambda x, y: jnp.argsort(lax.complex(x, y)), *np.array([[0.0, -0.0, np.nan, 0, 1], [1, 0, 0, np.nan, 2]], "f4")),
    (lambda x: jnp.sort_complex(jnp.roots(x, strip_zeros=False)), X[0]),
    (lambda x: lax.top_k(x, 2), X),
    (jax.nn.softmax, X),
    (jax.nn.log_softmax, X),
    (lambda x: jax.nn.logsumexp(x, axis=1), X),
]
CONTRACTION = [
    (lambda x, y: x @ y.T, X, Y),
    (lambda x, y: jnp.einsum("ij,ij->i", x, y), X, Y),
    (lambda x, y: jnp.matmul(x, y, precision="highest"), floats(2, 3, 4), floats(2, 4, 5)),
    (lambda x, k: lax.conv_general_dilated(x, k, (2, 1), "SAME", dimension_numbers=NHWC), IMAGE, KERNEL),
    (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), ((2, 1), (0, 1)), (2, 2), (1, 2), dimension_numbers=NHWC),
        IMAGE,
        KERNEL,
    ),
    (
        jax.grad(
            lambda x, k: (lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=NHWC) ** 2).sum(), (0, 1)
        ),
        IMAGE,
        KERNEL,
    ),
]
CONTROL = [
    (lambda x: lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, x), X),
    (lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x), X, np.int32(5)),
    (lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x)), X),
    (lambda x: lax.fori_loop(0, 4, lambda i, c: c + i * x, x), X),
    (lambda x: lax.scan(lambda c, a: (c + a, c * 2), x[0], x), X),
    (lambda x: lax.scan(lambda c, a: (c + a, c * 2), x[0], x, reverse=True), X),
    *(
        (lambda x, n=n, r=r: lax.scan(lambda c, a: (c + a, (c * 2, a.sum())), x[0], x, unroll=n, reverse=r), Y)
        for n in (2, 3, 7, True)
        for r in (False, True)
    ),
    (jax.grad(lambda x: lax.scan(lambda c, a: (jnp.tanh(c + a), c.sum()), x[0], x)[0].sum()), X),
    (jax.vmap(lambda x: lax.while_loop(lambda c: c < 10, lambda c: c * 2, x)), POSITIVE[0]),
    (jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum()), X),
    (jax.vmap(jax.grad(lambda x: jnp.tanh(x) ** 2)), X[0]),
    (jax.hessian(lambda x: (jnp.sin(x) ** 3).sum()), X[0]),
]
RANDOMNESS = [
    lambda k: jax.random.bits(k, (3, 5)),
    lambda k: jax.random.bits(k, (7,), jnp.uint8),
    lambda k: jax.random.uniform(k, (5,)),
    lambda k: jax.random.split(k, 3),
    lambda k: jax.random.fold_in(k, 7),
    lambda k: jax.random.bernoulli(k, 0.3, (10,)),
    lambda k: jax.random.randint(k, (6,), 0, 100),
    lambda k: jax.random.permutation(k, 9),
    lambda k: jax.random.bits(jax.random.wrap_key_data(k)),
    lambda k: jax.vmap(lambda one: jax.random.bits(one, (2,)))(jax.random.split(k, 3)),
    lambda k: jax.random.key_data(jax.random.split(jax.random.wrap_key_data(k))[1]),
    lambda k: jax.random.choice(k, 5, (3,)),
]
ALL = [*UNARY, *BINARY, *SHAPE, *INDEXING, *REDUCTION, *CONTRACTION, *CONTROL]


@RUNS
@pytest.mark.parametrize("case", ALL, ids=range(len(ALL)))
def test_rule(case, run):
    function, *arguments = case
    check(function, arguments, 2e-6, run)


@RUNS
@pytest.mark.parametrize("function", RANDOMNESS, ids=range(len(RANDOMNESS)))
def test_randomness_is_bit_for_bit(function, run):
    check(function, [KEY], 0, run)


BITS_OF_PRESETS = {
    **{"DEFAULT": 24, "F32_F32_F32": 24, "F64_F64_F64": 24, "TF32_TF32_F32": 11, "TF32_TF32_F32_X3": 22},
    **{"F16_F16_F16": 11, "F16_F16_F32": 11, "BF16_BF16_BF16": 8, "BF16_BF16_F32": 8, "BF16_BF16_F32_X3": 16},
    **{"BF16_BF16_F32_X6": 24, "BF16_BF16_F32_X9": 24},
}
"""How many bits of the operands the algorithms of dot products use."""
OF_8_BITS = ["ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY", "ANY_F8_ANY_F8_ANY_FAST_ACCUM"]


def check_algorithm(precision, bits, dtype, run):
    """As exact as the algorithm and the result's type allow, beside a product in 64 bits."""
    x, y = np.asarray(floats(4, 50), jnp.dtype(dtype)), np.asarray(floats(50, 5, seed=1), jnp.dtype(dtype))
    with jax.enable_x64(True):
        module = trivium.from_jax(lambda x, y: lax.dot(x, y, precision=precision), x, y)
        (result,) = run(module, x, y)
    assert result.dtype == dtype
    wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
    exact = wide_x @ wide_y
    allowed = 8 * 2.0**-bits * (np.abs(wide_x) @ np.abs(wide_y)) + float(jnp.finfo(dtype).eps) * np.abs(exact)
    assert (np.abs(result.astype(np.float64) - exact) <= allowed).all()


@RUNS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("preset", BITS_OF_PRESETS)
def test_algorithms_of_dot_products(preset, dtype, run):
    check_algorithm(preset, BITS_OF_PRESETS[preset], dtype, run)


@RUNS
def test_an_algorithm_that_is_no_preset(run):
    check_algorithm(lax.DotAlgorithm(np.float16, np.float16, np.float32), 11, "float32", run)


@RUNS
@pytest.mark.parametrize("preset", OF_8_BITS)
def test_algorithms_for_floats_of_8_bits(preset, run):
    check_algorithm(preset, 24, "float8_e5m2", run)
    with pytest.raises(trivium.Error, match="operands of 8-bit floats"):
        check_algorithm(preset, 24, "float32", run)


@RUNS
@pytest.mark.parametrize(
    "types",
    [
        "bfloat16 float32 float32",
        "float8_e4m3fn float8_e5m2 float32",
        "int8 bfloat16 float32",
        "float32 complex64 None",
    ],
)
def test_dot_products_of_different_types(types, run):
    lhs, rhs, result = types.split()
    x, y = np.asarray(4 * X, jnp.dtype(lhs)), np.asarray(Y.T, jnp.dtype(rhs))
    kind = None if result == "None" else np.dtype(result)
    check(lambda x, y: lax.dot(x, y, preferred_element_type=kind), [x, y], 2e-6, run)


ROWS, MATRICES, SIZES = floats(12, 6), floats(5, 6, 7, seed=1), np.array([3, 0, 5, 1, 2], np.int32)


def ragged(contracted, ragged=0, groups=(0,), batched=((), ()), **options):
    numbers = lax.RaggedDotDimensionNumbers((contracted, batched), [ragged], list(groups))
    return lambda x, y, sizes: lax.ragged_dot_general(x, y, sizes, numbers, **options)


@RUNS
@pytest.mark.parametrize(
    ("function", "lhs", "rhs", "sizes"),
    [
        (lax.ragged_dot, ROWS, MATRICES, SIZES),
        (lax.ragged_dot, ROWS, MATRICES, SIZES // 2),
        (ragged(((1,), (2,))), ROWS, MATRICES.swapaxes(1, 2).copy(), SIZES),
        (ragged(((0,), (0,)), groups=()), ROWS, floats(12, 7), SIZES),
        (ragged(((2,), (0,)), ragged=1, groups=(1,)), floats(2, 12, 6), MATRICES.transpose(1, 0, 2).copy(), SIZES),
        (ragged(((2,), (1,)), groups=(), batched=((0,), (0,))), floats(3, 4, 6), floats(3, 6, 5), SIZES[:3]),
        (ragged(((1,), (1,)), precision=lax.Precision.HIGHEST), ROWS, MATRICES, SIZES),
        (ragged(((1,), (1,)), precision=lax.DotAlgorithmPreset.F32_F32_F32), ROWS, MATRICES, SIZES),
        (ragged(((1,), (1,)), preferred_element_type=np.float32), integers(12, 6), MATRICES, SIZES),
    ],
    ids=["rows", "fewer", "turned", "sums", "blocks", "batches", "precise", "algorithm", "types"],
)
def test_products_of_groups(function, lhs, rhs, sizes, run):
    check(function, [lhs, rhs, sizes], 2e-6, run)


@RUNS
def test_derivatives_of_products_of_groups(run):
    """Each group is multiplied with its own matrix only, also backwards."""
    derivative = jax.grad(lambda x, y, sizes: jnp.sin(lax.ragged_dot(x, y, sizes)).sum(), (0, 1))
    check(derivative, [ROWS, MATRICES, SIZES], 2e-6, run)
    module = trivium.from_jax(derivative, ROWS, MATRICES, SIZES)
    names = {op.NAME for op in module.walk()}
    assert "chlo.ragged_dot" in names
    assert "stablehlo.dot_general" not in names


def test_normal_draws_agree():
    """The bits agree exactly; the only difference is the rounding of `erf_inv`."""
    check(lambda k: jax.random.normal(k, (50,)), [KEY], 2e-6)


@RUNS
def test_references(run):
    """Arrays that are changed in place, in a loop as well."""

    def sums(x):
        found, first = jax.new_ref(jnp.zeros_like(x)), jax.new_ref(x[0])
        first[...] *= 2

        def add(i, total):
            found[i] = total + x[i]
            return found[i]

        lax.fori_loop(0, x.shape[0], add, jnp.zeros_like(x[0]))
        return found[...], first[...]

    check(sums, [X], 1e-6, run)


def test_signature_names_the_leaves_of_pytrees():
    module = trivium.from_jax(lambda params, x: {"y": x @ params["w"]}, {"w": X.T}, X)
    names = [module.main.argument_attributes(i)["trivium.name"] for i in range(2)]
    assert names == ["params['w']", "x"]
    assert module.main.result_attributes(0)["trivium.name"] == "['y']"


def test_closed_jaxpr():
    closed = jax.make_jaxpr(lambda x: x * 2)(X)
    np.testing.assert_array_equal(trivium.evaluate(trivium.from_jax(closed), X)[0], X * 2)


def test_a_value_that_is_not_a_function_is_refused():
    with pytest.raises(trivium.Error, match="from_jax has a int, expected a function"):
        trivium.from_jax(3)
