"""Sampling and antialiased resizing, reductions over segments, losses in pieces."""

import torch

from tests.importers.pytorch.cases import b, case, f, i, n, p, v

FIRST = {"2d": (f(1, 2, 3, 4), f(1, 2, 3, 2)), "3d": (f(1, 2, 3, 4, 2), f(1, 2, 2, 2, 3))}
MANY_CHANNELS = {"2d": (f(2, 9, 3, 4), f(2, 4, 3, 2)), "3d": (f(2, 8, 3, 4, 2), f(2, 2, 2, 3, 3))}
GRIDS = [(kind, mode, padding, bool(padding % 2)) for kind in FIRST for mode in range(2) for padding in range(3)]
GRIDS += [("2d", 2, 0, False), ("2d", 2, 2, True)]
LENGTHS = v(2, 0, 3)
ENDS = v(0, 2, 2, 5)
SEGMENTS = [(how, initial) for how in ("sum", "mean", "max", "min", "prod") for initial in (None, 0.5)]
ROWS, WEIGHTS, TARGETS = f(5, 3), f(4, 3), v(0, 3, 1, -100, 2)
ENTRIES, BAGS = v(1, 4, 4, 0, 2, 5), v(0, 2, 2, 4)


def resized(name: str) -> list:
    backward = f"_upsample_{name}2d_aa_backward.default"
    return [
        case(f"_upsample_{name}2d_aa.default", f(1, 2, 7, 5), [3, 9], False),
        case(f"_upsample_{name}2d_aa.default", f(1, 2, 7, 5), [3, 2], True),
        case(f"_upsample_{name}2d_aa.default", n(1, 2, 7, 5, below=256).to(torch.uint8), [3, 9], False),
        case(f"_upsample_{name}2d_aa.default", n(1, 7, 12, 5, below=256).to(torch.uint8), [20, 2], True),
        case(backward, f(1, 2, 3, 9), [3, 9], [1, 2, 7, 5], False),
        case(f"upsample_{name}2d.default", n(2, 3, 7, 5, below=256).to(torch.uint8), [9, 4], False),
        case(f"upsample_{name}2d.default", n(1, 5, 4, 6, below=256).to(torch.uint8), [1, 13], True),
        case(f"upsample_{name}2d.default", n(1, 2, 6, 6, below=256).to(torch.uint8), [10, 3], False, 1.7, 0.6),
        case(f"upsample_{name}2d.vec", n(1, 4, 6, 6, below=256).to(torch.uint8), None, False, [1.7, 0.6]),
        case(f"upsample_{name}2d.vec", f(1, 2, 7, 5), [3, 9], False, None),
    ]


def bag(mode: int) -> list:
    """The forward op in the mode whose results are all specified, and the backward op."""
    weight = f(6, 3)
    result, _, _, best = torch.ops.aten._embedding_bag(weight, ENTRIES, BAGS, False, mode)
    bags, sizes = v(0, 0, 2, 2, 3, 3), v(2, 0, 2, 2)
    last = (torch.randn_like(result), ENTRIES, bags, sizes, best, 6, False, mode, None)
    return [
        case("_embedding_bag_dense_backward.default", *last),
        case("_embedding_bag_backward.default", last[0], ENTRIES, BAGS, *last[2:8], False, None),
    ]


LIMITS = torch.tensor([0, 2, 2, 7])
"""Where rows of several lengths begin and end."""

CASES = [
    *(
        case(f"grid_sampler_{kind}.default", *inputs[kind], mode, padding, bool(mode))
        for inputs in (FIRST, MANY_CHANNELS)
        for kind, modes in (("2d", (0, 1, 2)), ("3d", (0, 1)))
        for mode in modes
        for padding in (0, 1, 2)
    ),
    *(
        case(
            f"grid_sampler_{kind}_backward.default",
            *(f(*x.shape[:2], *grid.shape[1:-1]), x, grid, mode, padding, align, [True, True]),
        )
        for kind, mode, padding, align in GRIDS
        for x, grid in [FIRST[kind], MANY_CHANNELS[kind]]
    ),
    *resized("bilinear"),
    *resized("bicubic"),
    *(entry for mode in range(3) for entry in bag(mode)),
    case(
        "_embedding_bag_per_sample_weights_backward.default",
        *(f(4, 3), f(6, 3), ENTRIES, BAGS, v(0, 0, 2, 2, 3, 3), 0, 4),
    ),
    *(case("segment_reduce.default", f(5, 2), how, lengths=LENGTHS, initial=start) for how, start in SEGMENTS),
    case("segment_reduce.default", f(2, 5), "sum", offsets=ENDS.expand(2, 4).contiguous(), axis=1),
    *(
        case(
            "_segment_reduce_backward.default",
            *(f(3, 2), torch.segment_reduce(x, how, lengths=LENGTHS, initial=start), x, how),
            lengths=LENGTHS,
            initial=start,
        )
        for how, start in SEGMENTS
        for x in [f(5, 2) * b(5, 2)]
    ),
    *(case("histogram.bin_ct", f(20), 5, range=limits, density=limits is None) for limits in (None, [-1.0, 1.5])),
    case("histogram.bin_ct", f(20), 5, weight=p(20)),
    case("histogram.bins_tensor", f(20), v(-1.0, 0.0, 0.5, 2.0)),
    case("_histogramdd_bin_edges.default", f(9, 2), [3, 4]),
    case("_histogramdd_bin_edges.default", f(9, 2), [3, 4], range=[-1.0, 1.0, 0.0, 2.0]),
    case("_histogramdd_from_bin_cts.default", f(20, 2), [3, 4], weight=p(20), density=True),
    case("_histogramdd_from_bin_tensors.default", f(20, 2), [v(-1.0, 0.0, 1.0), v(-2.0, 0.0, 2.0)]),
    case("masked_scatter_backward.default", f(3, 4), b(3, 4), [13]),
    *(
        case("_grouped_mm.default", x, y, v(2, 2, 8, dtype=torch.int32), tolerance=2e-2)
        for x, y in [
            (f(8, 16, dtype=torch.bfloat16), f(3, 16, 8, dtype=torch.bfloat16)),
            (f(3, 8, 16, dtype=torch.bfloat16), f(16, 8, dtype=torch.bfloat16)),
            (f(8, 8, dtype=torch.bfloat16), f(8, 16, dtype=torch.bfloat16)),
        ]
    ),
    case("_grouped_mm.default", f(2, 8, 16, dtype=torch.bfloat16), f(2, 16, 8, dtype=torch.bfloat16), tolerance=2e-2),
    *(
        case(
            "torch_nn._linear_cross_entropy_batch_chunked.default",
            *(ROWS, WEIGHTS, TARGETS, bias, weight, reduction, -100, 0.0),
            *(16, "default", torch.float32, True, True, True, bias is not None),
        )
        for bias, weight, reduction in [(None, None, "mean"), (f(4), p(4), "mean"), (f(4), p(4), "sum")]
    ),
    case(
        "torch_nn._linear_cross_entropy_batch_chunked_no_reduction.default",
        *(ROWS, WEIGHTS, TARGETS, f(4), p(4), -100, 16, "default", torch.float32),
    ),
    case("_embedding_bag.default", f(6, 3), ENTRIES, BAGS, False, 2),
    *(
        case("embedding_renorm.default", f(6, 3, dtype=dtype), n(2, 2, below=3), 1.0, norm)
        for dtype, norm in ((torch.float32, 2.0), (torch.bfloat16, 1.0))
    ),
    *(
        case("_jagged_to_padded_dense_forward.default", values, [LIMITS], [longest], -1.0)
        for values in (f(7, 2), f(7), f(7, 2, 3), i(7, 2))
        for longest in (3, 6)
    ),
    case("_jagged_to_padded_dense_forward.default", f(7, 2)[:0], [LIMITS * 0], [3]),
    case("_jagged_to_padded_dense_forward.default", f(7, 2), [LIMITS.to(torch.int32)], [4], 0.5),
    *(
        case("_padded_dense_to_jagged_forward.default", dense, [LIMITS], 7)
        for dense in (f(3, 5, 2), f(3, 6), f(3, 5, 2, 3), i(3, 5, 2))
    ),
]
