"""Cases of ops of segments, of rows that are looked up, and of sparse tensors by rows, as in `cases`."""

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import Case, case, ints, normal, raw

TABLE = normal(7, 3)
PLACES, SEGMENTS = ints(3, 0, 6, 3, 1, 1), ints(0, 0, 2, 3, 3, 3)
MANY = ints(*range(7), *range(7)), ints(*[1] * 12, 4, 4)
WORDS = ("Sum", "Mean", "SqrtN")
TABLES = (TABLE, TABLE[:, 0], TABLE.astype(np.float64), TABLE.astype(np.float16))


def looked_up(word: str, table: np.ndarray, places: np.ndarray, ids: np.ndarray, sparse: bool = False) -> Case:
    return case(
        f"SparseSegment{word}",
        lambda x, i, s: getattr(raw, f"SparseSegment{word}")(data=x, indices=i, segment_ids=s, sparse_gradient=sparse),
        *(table, places, ids),
    )


def counted(op: str, numbers: np.ndarray, weights: np.ndarray, binary: bool, **where: object) -> Case:
    return case(
        op,
        lambda x, w: getattr(raw, op)(values=x, size=4, weights=w, binary_output=binary, **where),
        *(numbers, weights),
    )


NONE, NUMBERS = np.zeros(0, np.float32), ints(1, 3, 3, 0, 9, 2)
COUNTED = [
    counted(op, NUMBERS.astype(kind), weights, binary, **where)
    for op, where in (
        ("RaggedBincount", {"splits": np.int64([0, 2, 2, 5, 6])}),
        (
            "SparseBincount",
            {"indices": np.int64([[0, 1], [0, 4], *[[2, x] for x in range(3)], [3, 0]]), "dense_shape": [4, 5]},
        ),
        ("SparseBincount", {"indices": np.int64([[0], [1], [3], [4], [5], [7]]), "dense_shape": [8]}),
    )
    for kind in (np.int32, np.int64)
    for weights, binary in ((NONE, False), (normal(6), False), (NONE, True))
]
LOOKED_UP = [
    *(looked_up(word, table, PLACES, SEGMENTS) for word in WORDS for table in TABLES),
    *(looked_up(word, TABLE, *MANY, sparse=True) for word in WORDS),
    looked_up("Sum", ints(*range(14)).reshape(7, 2), PLACES, SEGMENTS),
    looked_up("Mean", TABLE, ints(), ints()),
    *(
        case(
            f"SparseSegment{word}WithNumSegments",
            lambda x, i, s, word=word, count=count: getattr(raw, f"SparseSegment{word}WithNumSegments")(
                data=x, indices=i, segment_ids=s, num_segments=count
            ),
            *(TABLE, PLACES, SEGMENTS),
        )
        for word in WORDS
        for count in (4, 6)
    ),
    *(
        case(
            f"SparseSegment{word}Grad",
            lambda g, i, s, word=word: getattr(raw, f"SparseSegment{word}Grad")(
                grad=g, indices=i, segment_ids=s, output_dim0=7
            ),
            *(normal(4, 3), PLACES, SEGMENTS),
        )
        for word in WORDS
    ),
    *(
        case(
            f"SparseSegment{word}GradV2",
            lambda g, i, s, word=word: getattr(raw, f"SparseSegment{word}GradV2")(
                grad=g, indices=i, segment_ids=s, dense_output_dim0=7
            ),
            *(normal(4, 3), PLACES, SEGMENTS),
        )
        for word in WORDS
    ),
]
SORTED = [
    case(f"Segment{word}", lambda x, s, word=word: getattr(raw, f"Segment{word}")(data=x, segment_ids=s), rows, ids)
    for word in ("Max", "Mean", "Min", "Prod", "Sum")
    for rows, ids in ((TABLE[:6], SEGMENTS), (TABLE[:0], ints()), (ints(*range(12)).reshape(6, 2), SEGMENTS))
]
CELLS = np.array([[0, 1], [3, 0], [3, 3], [1, 2]])
SPARSE = [
    *(
        case(
            "SparseReshape",
            lambda i, shape=shape: raw.SparseReshape(input_indices=i, input_shape=[4, 6], new_shape=shape),
            CELLS,
        )
        for shape in ([-1], [2, -1, 3], [6, 4])
    ),
    case(
        "SparseReshape",
        lambda i, old, new: raw.SparseReshape(input_indices=i, input_shape=old, new_shape=new),
        *(CELLS, np.array([4, 6]), np.array([3, -1])),
    ),
    *(
        case(
            "SparseFillEmptyRows",
            lambda i, v: raw.SparseFillEmptyRows(indices=i, values=v, dense_shape=[6, 4], default_value=-1.0),
            *(indices, normal(len(indices))),
        )
        for indices in (CELLS, CELLS[:0])
    ),
    *(
        case(
            "SparseReduceMax",
            lambda i, v, over=over, keep=keep: raw.SparseReduceMax(
                input_indices=i, input_values=v, input_shape=[4, 6], reduction_axes=over, keep_dims=keep
            ),
            *(CELLS, values),
        )
        for values in (-(normal(4) ** 2), ints(-3, 5, -1, -2))
        for over, keep in (([0], False), ([-1], True), ([0, 1], False))
    ),
    case(
        "SparseTensorDenseAdd",
        lambda i, v, b: raw.SparseTensorDenseAdd(a_indices=i, a_values=v, a_shape=[4, 6], b=b),
        *(CELLS, normal(4), normal(4, 6)),
    ),
    case(
        "SparseFillEmptyRowsGrad",
        lambda i, g: raw.SparseFillEmptyRowsGrad(reverse_index_map=i, grad_values=g),
        *(np.array([0, 4, 5, 1]), normal(8)),
    ),
]


def lookup_step(table: tf.Tensor, places: tf.Tensor, weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The rows of a table that sparse tensors name, and a gradient."""
    with tf.GradientTape() as tape:
        tape.watch(table)
        named, by = (tf.SparseTensor(CELLS[[0, 3, 1, 2]], x, [4, 6]) for x in (places, weights))
        rows = tf.nn.safe_embedding_lookup_sparse(table, named, by, "sum", default_id=2, allow_fast_lookup=True)
        loss = tf.reduce_sum(tf.square(rows))
    return rows, tf.convert_to_tensor(tape.gradient(loss, table))


SEGMENT_CASES: list[Case] = [*COUNTED, *LOOKED_UP, *SORTED, *SPARSE]
