"""Convolutions and their gradients: strides, paddings, dilations, groups, transposed, of one to three dimensions."""

from tests.importers.pytorch.cases import case, f

# input, weight, stride, padding, dilation, transposed, output padding, groups
FORMS = [
    (f(2, 3, 8), f(4, 3, 3), [1], [0], [1], False, [0], 1),
    (f(2, 3, 8, 9), f(4, 3, 3, 2), [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
    (f(2, 3, 8, 9), f(4, 3, 3, 2), [2, 3], [1, 0], [1, 2], False, [0, 0], 1),
    (f(2, 4, 7, 7), f(4, 1, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 4),
    (f(2, 4, 7, 7), f(6, 2, 3, 3), [1, 1], [1, 1], [2, 2], False, [0, 0], 2),
    (f(1, 2, 4, 5, 4), f(3, 2, 2, 3, 2), [1, 2, 1], [0, 1, 0], [1, 1, 1], False, [0, 0, 0], 1),
    (f(2, 3, 5), f(3, 4, 3), [2], [1], [1], True, [1], 1),
    (f(2, 4, 5, 4), f(4, 3, 3, 2), [2, 3], [1, 0], [1, 2], True, [0, 1], 1),
    (f(2, 4, 5, 4), f(4, 3, 3, 2), [2, 1], [1, 0], [2, 1], True, [1, 0], 2),
]

CASES = [
    *(case("convolution.default", x, w, None, *rest) for x, w, *rest in FORMS),
    case("convolution.default", f(1, 3, 5, 5), f(4, 3, 3, 3), f(4), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    case("convolution.default", f(0, 3, 5, 5), f(4, 3, 3, 3), f(4), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    case("conv1d.default", f(2, 3, 8), f(4, 3, 3), f(4), [2], [1]),
    case("conv1d.default", f(3, 8), f(4, 3, 3)),
    case("conv2d.default", f(2, 3, 8, 8), f(4, 3, 3, 3), f(4), [2, 2], [1, 1]),
    case("conv2d.default", f(3, 8, 8), f(4, 3, 3, 3), f(4)),
    case("conv3d.default", f(1, 2, 4, 4, 4), f(3, 2, 2, 2, 2)),
    case("conv1d.padding", f(2, 3, 8), f(4, 3, 3), None, [1], "valid"),
    case("conv2d.padding", f(2, 3, 8, 8), f(4, 3, 4, 3), None, [1, 1], "same", [2, 1]),
    case("conv3d.padding", f(1, 2, 4, 4, 4), f(3, 2, 2, 2, 2), None, [1, 1, 1], "same"),
    case("conv_transpose1d.default", f(2, 3, 5), f(3, 4, 3), f(4), [2]),
    case("conv_transpose2d.input", f(2, 3, 5, 5), f(3, 4, 3, 3), f(4), [2, 2], [1, 1], [1, 1]),
    case("conv_transpose3d.input", f(1, 2, 3, 3, 3), f(2, 1, 2, 2, 2)),
]


def _backward(x, w, *rest):
    import torch

    shape = torch.ops.aten.convolution(x, w, None, *rest).shape
    bias = w.shape[1] * rest[-1] if rest[3] else w.shape[0]
    return case("convolution_backward.default", f(*shape), x, w, [bias], *rest, [True, True, True])


CASES += [_backward(*form) for form in FORMS]
CASES += [
    case("convolution_backward.default", f(2, 4, 6), f(2, 3, 8), f(4, 3, 3), None, *FORMS[0][2:], [False, True, False])
]
