"""Reads and writes at computed positions."""

import torch

from tests.importers.pytorch.cases import b, case, f, i, n, v

X = f(4, 5, 3)
SCALAR = v(2.0).reshape(())

CASES = [
    case("embedding.default", f(7, 3), n(2, 4, below=7), 2),
    case("embedding_dense_backward.default", f(2, 4, 3), n(2, 4, below=5), 7, -1, False),
    case("embedding_dense_backward.default", f(8, 3), n(8, below=3), 3, 1, True),
    case("index_select.default", X, -1, n(4, below=3)),
    case("index_select.default", SCALAR, 0, v(0)),
    case("gather.default", X, 1, n(4, 2, 3, below=5)),
    case("gather.default", X, 0, n(2, 3, 1, below=4)),
    case("gather.default", SCALAR, 0, v(0).reshape(())),
    case("gather.default", f(5), 0, n(2, 0, below=5)),
    case("scatter.value", f(5), 0, n(2, 0, below=5), 1.0),
    case("take_along_dim.default", X, n(4, 2, 1, below=5), 1),
    case("take_along_dim.default", X, n(4, below=60)),
    # index
    case("index.Tensor", X, [n(2, below=4)]),
    case("index.Tensor", X, [None, n(2, 3, below=5)]),
    case("index.Tensor", X, [i(2, low=-4, high=4), None, i(2, low=-3, high=3)]),
    case("index.Tensor", X, [None, n(2, 1, below=5), n(3, below=3)]),
    case("index.Tensor", X, [n(2, 1, below=4), n(3, below=5)]),
    case("index.Tensor", X, [v(1).reshape(())]),
    case("_unsafe_index.Tensor", X, [n(2, below=4), None, None]),
    case("take.default", f(3, 4), v(1, -2, 5).reshape(3, 1)),
    case("put.default", f(3, 4), v(1, -2, 5), f(3)),
    case("put.default", f(3, 4), v(1, 1, 5), f(3), True),
    # index_put
    case("index_put.default", X, [v(0, 2)], f(2, 5, 3)),
    case("index_put.default", X, [v(0, 2, 0)], f(5, 3), True),
    case("index_put.default", X, [v(True, False, False, True)], torch.tensor(1.5, dtype=torch.float64)),
    case("index_put.default", X, [None, v(1, 3)], f(4, 2, 3)),
    case("index_put.default", f(2, 4, 5, 3), [None, v(0, 1), v(3, -1)], f(2, 2, 3)),
    case("index_put.default", f(2, 4, 5, 3), [None, v(0, 0), v(3, 3)], f(2, 2, 3), True),
    case("index_put.default", X, [v(0, -1), None, v(1, 2)], f(2, 5)),
    case("index_put.default", X, [v(0, 1, 0), v(1, 2, 1)], SCALAR, True),
    case("index_put.default", X, [b(4, 5)], SCALAR),
    case("index_put.default", X, [b(4, 5, 3)], SCALAR, True),
    case("_unsafe_index_put.default", X, [v(1, 2)], f(5, 3)),
    case("masked_scatter.default", X, b(5, 1), f(60)),
    # scatter
    case("scatter.src", X, 1, v(3, 1, 4).reshape(1, 3, 1), f(2, 4, 2)),
    case("scatter.value", X, 0, n(2, 5, 3, below=4), 1.5),
    case("scatter.reduce", X, 0, n(2, 5, 3, below=4), f(2, 5, 3), reduce="add"),
    case("scatter.value_reduce", X, 0, n(2, 5, 3, below=4), 2, reduce="multiply"),
    case("scatter_add.default", X, -1, n(4, 5, 3, below=3), f(4, 5, 3)),
    case("scatter_add.default", SCALAR, 0, v(0).reshape(()), SCALAR),
    *(
        case("scatter_reduce.two", X, 0, n(3, 5, 3, below=4), f(3, 5, 3), reduce, include_self=own)
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ),
    case("scatter_reduce.two", i(4, 5, 3), 0, n(3, 5, 3, below=4), i(3, 5, 3), "mean"),
    case("index_reduce.default", i(4, 5, 3), 1, n(6, below=5), i(4, 6, 3), "mean", include_self=False),
    case("index_add.default", X, 1, n(6, below=5), f(4, 6, 3), alpha=2),
    *(
        case("index_reduce.default", X, 1, n(6, below=5), f(4, 6, 3), reduce, include_self=include)
        for reduce in ("prod", "mean", "amax", "amin")
        for include in (True, False)
    ),
    case("index_reduce.default", f(), 0, n(below=1), f(), "prod"),
    case("index_copy.default", X, 0, v(2, 0), f(2, 5, 3)),
    case("index_copy.default", X, 1, v(2, 0), f(4, 2, 3)),
    case("index_copy.default", X, 2, v(2, 0), f(4, 5, 2)),
    case("index_fill.int_Scalar", X, 2, v(1), 9),
    case("index_fill.int_Scalar", X, 1, v(-1, 0), 9),
    case("index_fill.int_Tensor", X, 0, v(1, 3), SCALAR),
]
