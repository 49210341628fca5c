"""Sums of segments of rows, some of which are empty, or longer than there are rows."""

from tests.importers.pytorch.cases import case, f, v

CASES = [
    *(case("trivium.segment_sums.default", f(5, *shape), f(5), v(2, 0, 3)) for shape in ((2,), (), (3, 2))),
    case("trivium.segment_sums.default", f(4, 3), f(4), v(1, 5, 0)),
]
