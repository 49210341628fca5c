"""Cases of ops that look for elements, count them, or decode sequences, as in `cases`."""

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import Case, case, ints, normal, raw

FLAGS = (False, True)
ROWS = normal(3, 7)
SPECIAL = np.random.default_rng(6).choice([np.nan, -np.inf, np.inf, -3.4028235e38, 1, 2], (8, 9)).astype(np.float32)
FOUND = [
    *(
        case(op, lambda x, op=op, at=at: getattr(raw, op)(input=x, dimension=at), x)
        for op in ("ArgMax", "ArgMin")
        for at in (0, 1)
        for x in (SPECIAL, SPECIAL.astype(np.float64), np.where(np.isfinite(SPECIAL), np.nan, SPECIAL))
    ),
    *(
        case("NthElement", lambda x, at=at, back=back: raw.NthElement(input=x, n=at, reverse=back), x)
        for x in (ROWS, ints(*range(7)) % 4)
        for at in (0, 2, 6)
        for back in FLAGS
    ),
    case("NthElement", lambda x, n: raw.NthElement(input=x, n=n, reverse=True), ROWS, np.int32(2)),
    case("InTopK", lambda x, at: raw.InTopK(predictions=x, targets=at, k=2), ROWS, ints(0, 5, 3)),
    *(
        case(
            "HistogramFixedWidth",
            lambda x, kind=kind: raw.HistogramFixedWidth(
                values=x, value_range=np.asarray([1, 9]).astype(x.dtype.as_numpy_dtype), nbins=5, dtype=kind
            ),
            x,
        )
        for x in (normal(4, 6) * 9, ints(*range(-3, 15)), normal(30).astype(np.float64))
        for kind in (tf.int32, tf.int64)
    ),
    case("UnravelIndex", lambda i: raw.UnravelIndex(indices=i, dims=[3, 4, 5]), ints(0, 59, 17, 23)),
    case("UnravelIndex", lambda i, d: raw.UnravelIndex(indices=i, dims=d), np.int64(17), np.array([3, 4, 5])),
    case("GuaranteeConst", lambda x: raw.GuaranteeConst(input=x), ROWS),
]
STEPS = normal(6, 3, 4)
LENGTHS = ints(6, 4, 2)
LEVELS = ints(*np.random.default_rng(5).integers(0, 3, STEPS.size)).reshape(STEPS.shape).astype(np.float32)
DECODED = [
    case(
        "CTCGreedyDecoder",
        lambda x, n, merge=merge, blank=blank: raw.CTCGreedyDecoder(
            inputs=x, sequence_length=n, merge_repeated=merge, blank_index=blank
        ),
        *(steps, LENGTHS),
    )
    for steps in (LEVELS, LEVELS.astype(np.float64), np.where(LEVELS == 1, np.nan, LEVELS))
    for merge, blank in ((False, -1), (True, 0))
]
PLACES = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0]])
LABELS = ints(1, 1, 2, 0, 3, 2)


def loss(steps: np.ndarray, lengths: np.ndarray, **how: bool) -> Case:
    return case(
        "CTCLoss",
        lambda x, i, v, n: raw.CTCLoss(inputs=x, labels_indices=i, labels_values=v, sequence_length=n, **how),
        *(steps, PLACES, LABELS, lengths),
    )


LOSSES = [
    *(
        loss(STEPS, LENGTHS, preprocess_collapse_repeated=collapse, ctc_merge_repeated=merge)
        for collapse in FLAGS
        for merge in FLAGS
    ),
    loss(STEPS.astype(np.float64), LENGTHS),
    loss(STEPS, ints(2, 0, 5), ignore_longer_outputs_than_inputs=True),
]

DISTANCES = [
    case(
        "EditDistance",
        lambda i, v, j, w, normalize=normalize: raw.EditDistance(
            hypothesis_indices=i,
            hypothesis_values=v,
            hypothesis_shape=[3, 4],
            truth_indices=j,
            truth_values=w,
            truth_shape=[4, 3],
            normalize=normalize,
        ),
        *(PLACES, LABELS, np.array([[0, 0], [0, 1], [1, 1], [1, 2], [2, 0], [3, 1]]), LABELS[::-1]),
    )
    for normalize in FLAGS
]
SETS = [
    *(
        case(
            "DenseToDenseSetOperation",
            lambda x, y, name=name: raw.DenseToDenseSetOperation(set1=x, set2=y, set_operation=name),
            *(ROWS.astype(np.int32), ROWS[:, :4].astype(np.int32)),
        )
        for name in ("a-b", "B-A", "intersection", "union")
    ),
    case(
        "DenseToSparseSetOperation",
        lambda x, i, v: raw.DenseToSparseSetOperation(
            set1=x, set2_indices=i, set2_values=v, set2_shape=[3, 4], set_operation="union"
        ),
        *(ROWS.astype(np.int32), PLACES, LABELS),
    ),
    case(
        "SparseToSparseSetOperation",
        lambda i, v, j, w: raw.SparseToSparseSetOperation(
            set1_indices=i,
            set1_values=v,
            set1_shape=[3, 4],
            set2_indices=j,
            set2_values=w,
            set2_shape=[3, 3],
            set_operation="a-b",
        ),
        *(PLACES, LABELS, PLACES[::2], LABELS[1::2]),
    ),
    case("SetSize", lambda i, v: raw.SetSize(set_indices=i, set_values=v, set_shape=[4, 4]), PLACES, LABELS),
]

SEARCH_CASES: list[Case] = [*FOUND, *DECODED, *LOSSES, *DISTANCES, *SETS]
