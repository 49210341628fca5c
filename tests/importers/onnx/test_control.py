"""Branches and loops with sizes that depend on data, or that differ between branches or iterations, compared with ONNX
Runtime."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import trivium
from tests.importers.onnx.arrays import floats
from tests.importers.onnx.checks import check

pytestmark = pytest.mark.onnx

OPENING = '<ir_version: 9, opset_import: ["" : 18]> g '
"""The opening of a model's text."""

IF = """(bool p, float[N] x) => (float[M] y) {
    z = Constant<value_float = 0.0>()
    y = If(p) <then_branch = a () => (float[S] s) { THEN }, else_branch = b () => (float[E] e) { ELSE }>
}"""

POSITIVE = "k = Greater(x, z) s = Compress(x, k)"
TWICE = "e = Concat<axis = 0>(x, x)"
NESTED = """t = ReduceMax<keepdims = 0>(x) big = Greater(t, z)
    e = If(big) <then_branch = c () => (float[C] u) { k2 = Less(x, z) u = Compress(x, k2) },
                 else_branch = d () => (float[D] v) { v = Concat<axis = 0>(x, x, x) }>"""

BRANCHES = [("s = Neg(x)", TWICE), (POSITIVE, "e = Identity(x)"), (POSITIVE, NESTED), (POSITIVE, TWICE)]

COUNTED = """(float[4] x) => (float[K] y, float[N, 4] r) {
    n = Constant<value_int = COUNT>() p = Constant<value = bool {1}>() z = Constant<value_float = 1.0>()
    y, r = Loop(n, p, x) <body = b (int64 i, bool go, float[A] v) => (bool on, float[B] w, float[4] row) {
        BODY
        t = ReduceSum<keepdims = 0>(w) row = Add(x, t) on = CONDITION
    }>
}"""

GROWS = "w = Concat<axis = 0>(v, v)"
SHRINKS = "f = Cast<to = 1>(i) k = Greater(v, f) w = Compress(v, k)"

SCAN = """(float[4] s, float[3, 4] rows) => (float[4] y, float[3] r) {
    z = Constant<value_float = 0.0>()
    y, r = Scan<num_scan_inputs = 1, body = b (float[4] v, float[4] row) => (float[4] w, float c) {
        k = Greater(row, z) kept = Compress(row, k) c = ReduceSum<keepdims = 0>(kept) w = Add(v, c)
    }>(s, rows)
}"""


def compare(text: str, *calls: tuple[np.ndarray, ...]) -> None:
    model = onnx.parser.parse_model(OPENING + text)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    module = trivium.from_onnx(model)
    module.verify()
    run = trivium.compile(module)
    for arguments in calls:
        wanted = session.run(None, dict(zip((x.name for x in model.graph.input), arguments, strict=True)))
        results = run(*arguments), trivium.evaluate(module, *arguments)
        for found in results:
            for mine, theirs in zip(found, wanted, strict=True):
                assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", ["N", "3"])
@pytest.mark.parametrize(("then", "other"), BRANCHES)
def test_branches_of_other_sizes(then: str, other: str, size: str) -> None:
    x = np.array([1, -2, 3], np.float32)
    calls = [(np.array(p), sign * x) for p in (True, False) for sign in (1, -1, 0)]
    compare(IF.replace("THEN", then).replace("ELSE", other).replace("[N]", f"[{size}]"), *calls)


@pytest.mark.parametrize("body", [GROWS, SHRINKS, f"{SHRINKS.replace('w', 'q')} w = Concat<axis = 0>(q, q)"])
@pytest.mark.parametrize(("count", "condition"), [(3, "Identity(go)"), (1, "Identity(go)"), (5, "Less(i, two)")])
def test_iterations_of_other_sizes(body: str, count: int, condition: str) -> None:
    text = COUNTED.replace("BODY", body).replace("COUNT", str(count)).replace("CONDITION", condition)
    text = text.replace("n = Const", "two = Constant<value_int = 1>() n = Const")
    compare(text, (np.array([1, 5, 9, -1], np.float32),), (np.array([7, 0, -3, 2], np.float32),))


def test_rows_of_which_elements_are_chosen() -> None:
    compare(SCAN, (floats(4), floats(3, 4)), (floats(4), -np.ones((3, 4), np.float32)))


@pytest.mark.parametrize("size", ["N", "0"])
def test_loops_without_iterations(size: str) -> None:
    loop = """(int64 n, float[4] s) => (float[M, 4] r) {
        r = Loop(n) <body = b (int64 i, bool go) => (bool on, float[4] w) { on = Identity(go) w = Neg(s) }>
    }"""
    scan = """(float[4] s, float[SIZE, 4] rows) => (float[4] y, float[SIZE, 4] r) {
        y, r = Scan<num_scan_inputs = 1, body = b (float[4] v, float[4] row) => (float[4] w, float[4] c) {
            c = Neg(row) w = Add(v, c)
        }>(s, rows)
    }""".replace("SIZE", size)
    layer = """(float[1, 3, 4] w, float[SIZE, 2, 4] x) => (float[SIZE, 1, 2, 3] y, float[1, 2, 3] h) {
        r = Constant<value = float[1, 3, 3] {1, 2, 3, 4, 5, 6, 7, 8, 9}>()
        y, h = RNN<hidden_size = 3>(x, w, r)
    }""".replace("SIZE", size)
    start, none = floats(4), np.zeros((0, 4), np.float32)
    rows = np.zeros((0, 2, 4), np.float32)
    for text, arguments, wanted in (
        (loop, (np.array(0), start), [none]),
        (scan, (start, none), [start, none]),
        (layer, (floats(1, 3, 4), rows), [np.zeros((0, 1, 2, 3), np.float32), np.zeros((1, 2, 3), np.float32)]),
    ):
        module = trivium.from_onnx(onnx.parser.parse_model(OPENING + text))
        module.verify()
        for results in (trivium.compile(module)(*arguments), trivium.evaluate(module, *arguments)):
            for mine, expected in zip(results, wanted, strict=True):
                np.testing.assert_array_equal(mine, expected, strict=True)


ROWS = """(float[N, M] x) => (float[A, B] y, float[C, D, E] r, float[F, G] s) {
    n = Constant<value_int = 3>() p = Constant<value = bool {1}>()
    zero = Constant<value_ints = [0]>() h = ReduceSum<keepdims = 0>(x, zero)
    y, r = Loop(n, p, x) <body = b (int64 i, bool go, float[N, M] v) => (bool on, float[N, M] w, float[Q, M] row) {
        on = Identity(go) w = Add(v, x) row = Concat<axis = 0>(w, w)
    }>
    k, s = Scan<num_scan_inputs = 1, body = d (float[M] g, float[M] e) => (float[M] o, float[M] c) {
        o = Add(g, e) c = Mul(o, e)
    }>(h, x)
}"""


def test_rows_of_any_size() -> None:
    compare(ROWS, (floats(2, 3),), (floats(1, 4),))


SEQUENCES = """(bool p, int64 at, float[N, 3] x) => (float[A, 3] y, float[B, 3] z) {
    n = Constant<value_int = 3>() q = Constant<value = bool {1}>() none = SequenceEmpty()
    s = If(p) <then_branch = a () => (seq(float) t) { t = SequenceConstruct(x, x) },
               else_branch = b () => (seq(float) e) { m = Neg(x) e = SequenceConstruct(m, x) }>
    y = SequenceAt(s, at)
    k = Loop(n, q, none) <body = c (int64 i, bool go, seq(float) v) => (bool on, seq(float) w) {
        on = Identity(go) f = Cast<to = 1>(i) u = Mul(x, f) w = SequenceInsert(v, u)
    }>
    z = ConcatFromSequence<axis = 0>(k)
}"""


@pytest.mark.parametrize("size", ["N", "2"])
def test_sequences_in_branches_and_loops(size: str) -> None:
    x = floats(2, 3)
    calls = [(np.array(p), np.array(at), x) for p, at in ((True, 0), (False, 0), (False, -1))]
    compare(SEQUENCES.replace("[N", f"[{size}"), *calls)


def test_sequences_that_are_refused() -> None:
    longer = SEQUENCES.replace("SequenceConstruct(m, x)", "SequenceConstruct(m, x, x)")
    unknown = SEQUENCES.replace("Loop(n,", "Loop(at,")
    for text, message in ((longer, "expected sequences of the same lengths"), (unknown, "v_initial without a small")):
        with pytest.raises(trivium.UnsupportedOpError, match=message):
            trivium.from_onnx(onnx.parser.parse_model(OPENING + text))


def test_what_is_refused() -> None:
    """The number of iterations must be known, and branches must have results of one rank."""
    text = COUNTED.replace("BODY", GROWS).replace("CONDITION", "Greater(t, z)").replace("COUNT", "3")
    with pytest.raises(
        trivium.UnsupportedOpError, match=r"body has .*f32> for value 0, .*expected shapes that do not change"
    ):
        trivium.from_onnx(onnx.parser.parse_model(OPENING + text))
    ranks = IF.replace("THEN", "s = Neg(x)").replace("ELSE", "o = Constant<value_ints = [0]>() e = Unsqueeze(x, o)")
    with pytest.raises(trivium.Error):
        trivium.from_onnx(onnx.parser.parse_model(OPENING + ranks.replace("float[E]", "float[1, E]")))


def test_nodes_in_any_order() -> None:
    """As converters to float16 write them: nodes come before those that make their operands, which a loop's body may
    use too."""
    text = """(float[3] x) => (float[3] y) {
        y = Loop(n, yes, twice) <body = b (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
            w = Add(s, minus) s = Sub(v, twice) again = Identity(go) }>
        n = Constant<value = int64 {3}>() yes = Constant<value = bool {1}>()
        minus = Neg(twice) twice = Add(x, x)
    }"""
    x = floats(3)
    (y,) = trivium.evaluate(trivium.from_onnx(onnx.parser.parse_model(OPENING + text)), x)
    np.testing.assert_allclose(y, -10 * x, rtol=1e-5)
    nodes = "d = Relu(c) b = Sub(a, x) c = Mul(b, a) a = Neg(x)"
    check(onnx.parser.parse_model(OPENING + "(float[3] x) => (float[3] d) {" + nodes + "}"), [x])


MAPS = {
    "unequal": "n = Constant<value = int64[2] {1, 3}>() q = SplitToSequence(x, n) r = SequenceMap<body = BODY>(q, x)",
    "two results": "q = SplitToSequence(x) r, s = SequenceMap<body = BODY>(q, q)",
}
BODIES = {
    "unequal": "b (float[A, 3] v, float[4, 3] z) => (float[A, 3] w) "
    "{ o = Constant<value = int64[1] {0}>() m = ReduceMax<keepdims = 1>(z, o) w = Sub(v, m) }",
    "two results": "b (float[1, 3] v, float[1, 3] z) => (float[1, 3] w, float[1, 3] t) { w = Neg(v) t = Mul(v, z) }",
}


@pytest.mark.parametrize("name", MAPS)
def test_functions_of_each_tensor_of_a_sequence(name: str) -> None:
    """ONNX defines them by a loop, whose body is in the model's version of the operator set."""
    nodes = MAPS[name].replace("BODY", BODIES[name])
    text = f"(float[4, 3] x) => (float[4, 3] y) {{ {nodes} y = ConcatFromSequence<axis = 0>(r) }}"
    x = floats(4, 3)
    (y,) = trivium.evaluate(trivium.from_onnx(onnx.parser.parse_model(OPENING + text)), x)
    np.testing.assert_allclose(y, x - x.max(0) if name == "unequal" else -x)


def test_functions_of_no_tensors() -> None:
    text = """(float[3] x) => (int64 y) { q = SequenceEmpty() y = SequenceLength(r)
        r = SequenceMap<body = b (float[3] v) => (float[3] w) { w = Neg(v) }>(q) }"""
    (y,) = trivium.evaluate(trivium.from_onnx(onnx.parser.parse_model(OPENING + text)), floats(3))
    assert y == 0


def test_conditions_that_follow_from_sizes() -> None:
    text = """(float[3, 6] x) => (float[A, B, C] y) {
        numbers = Constant<value_ints = [1, 0, 2]>() one = Constant<value_ints = [1]>()
        most = ReduceMax<keepdims = 1>(numbers) zero = Sub(one, one) two = Add(one, one)
        shape = Shape(x) rows = Slice(shape, zero, one) same = Equal(most, rows)
        y = If(same) <then_branch = a () => (float[R, S] s) { s = Identity(x) },
                      else_branch = b () => (float[P, Q, T] t) { t = Unsqueeze(x, one) }>
    }"""
    compare(text, (floats(3, 6),))


def test_slices_at_places_of_as_many_entries_as_there_are_axes() -> None:
    text = """(float[5, 4] x, int64[3] places, int64 at) => (float[A, 4] y) {
        zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>() flat = Constant<value_ints = [-1]>()
        low = Reshape(at, flat) high = Add(low, one) start = Slice(places, low, high, zero) end = Add(start, one)
        y = Slice(x, start, end, zero)
    }"""
    places = np.array([4, 0, 2])
    compare(text, *((floats(5, 4), places, np.array(at)) for at in range(3)))
