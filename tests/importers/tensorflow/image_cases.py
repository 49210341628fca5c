"""Cases of ops of images: dilation, and resizing with sampling kernels."""

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import IMAGE, Case, case, ints, normal, raw

DILATIONS = (
    ([1, 1, 1, 1], [1, 1, 1, 1], "SAME"),
    ([1, 2, 1, 1], [1, 1, 2, 1], "VALID"),
    ([1, 3, 2, 1], [1, 2, 2, 1], "SAME"),
)
HEIGHTS = normal(3, 2, 4)
TIED = np.float32([[1, 1, 0, 2], [2, 2, 2, np.nan], [0, 1, -np.inf, 1]]).reshape(1, 3, 4, 1)


def dilated(how: tuple[list[int], list[int], str], image: np.ndarray, heights: np.ndarray) -> list[Case]:
    """Dilation with windows of a kind, and its gradients."""
    given = dict(zip(("strides", "rates", "padding"), how, strict=True))
    gradient = normal(*raw.Dilation2D(input=image, filter=heights, **given).shape)
    backward = [
        case(
            f"Dilation2DBackprop{of}",
            lambda x, f, g, of=of: getattr(raw, f"Dilation2DBackprop{of}")(input=x, filter=f, out_backprop=g, **given),
            *(image, heights, gradient.astype(image.dtype)),
        )
        for of in ("Input", "Filter")
    ]
    return [case("Dilation2D", lambda x, f: raw.Dilation2D(input=x, filter=f, **given), image, heights), *backward]


SAMPLING = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
SCALES = ((3, 9, (0.5, 1.3), (0, 0.25)), (11, 4, (1.9, 0.6), (-0.5, 1)))


def scaled(kernel: str, height: int, width: int, scale: tuple, shift: tuple, antialias: bool) -> list[Case]:
    numbers = np.float32(scale), np.float32(shift)
    how = {"kernel_type": kernel, "antialias": antialias}
    return [
        case(
            "ScaleAndTranslate",
            lambda x, s, t: raw.ScaleAndTranslate(images=x, size=[height, width], scale=s, translation=t, **how),
            *(IMAGE, *numbers),
        ),
        case(
            "ScaleAndTranslateGrad",
            lambda g, x, s, t: raw.ScaleAndTranslateGrad(grads=g, original_image=x, scale=s, translation=t, **how),
            *(normal(2, height, width, 4), IMAGE, *numbers),
        ),
    ]


CUT = np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [0.8, 0.3, 0.1, 0.6], [-0.3, 0.5, 1.2, 1.4]])
CROPPED = [
    *(
        case(
            "CropAndResizeGradImage",
            lambda g, b, i, kind=kind, method=method: raw.CropAndResizeGradImage(
                grads=g, boxes=b, box_ind=i, image_size=[2, 6, 7, 4], T=kind, method=method
            ),
            *(normal(4, *size, 4), CUT, ints(0, 1, 1, 0)),
        )
        for size in ((3, 5), (1, 1))
        for kind in (tf.float32, tf.float64)
        for method in ("bilinear", "nearest")
    ),
    *(
        case(
            "CropAndResizeGradBoxes",
            lambda g, x, b, i: raw.CropAndResizeGradBoxes(grads=g, image=x, boxes=b, box_ind=i),
            *(normal(4, *size, 4), image, CUT, ints(0, 1, 1, 0)),
        )
        for size in ((3, 5), (1, 4), (2, 1))
        for image in (IMAGE, (IMAGE * 9).astype(np.int32))
    ),
]
AREAS = [
    case(
        "ResizeArea",
        lambda x, size=size, align=align: raw.ResizeArea(images=x, size=size, align_corners=align),
        image,
    )
    for image in (IMAGE, (IMAGE * 9).astype(np.int32), IMAGE[:, :1], IMAGE[:, :, 2:3])
    for size in ((2, 3), (9, 5), (6, 1))
    for align in (False, True)
]
VOLUMES = [
    case(
        "ExtractVolumePatches",
        lambda x, size=size, step=step, padding=padding: raw.ExtractVolumePatches(
            input=x, ksizes=[1, size, 2, size, 1], strides=[1, step, 1, step, 1], padding=padding
        ),
        normal(2, 4, 5, 4, 2),
    )
    for size, step in ((2, 1), (3, 2), (1, 2))
    for padding in ("SAME", "VALID")
]
IMAGE_CASES: list[Case] = [
    *CROPPED,
    *AREAS,
    *VOLUMES,
    *(each for how in DILATIONS for each in dilated(how, IMAGE, HEIGHTS)),
    *(each for how in DILATIONS for each in dilated(how, TIED, np.zeros((2, 2, 1), np.float32))),
    case(
        "Dilation2D",
        lambda x, f: raw.Dilation2D(input=x, filter=f, strides=[1] * 4, rates=[1] * 4, padding="SAME"),
        *(ints(-5, 3, 7, 1).reshape(1, 2, 2, 1), ints(1, -2, 0, 3).reshape(2, 2, 1)),
    ),
    *(
        each
        for kernel in SAMPLING
        for antialias in (True, False)
        for size in SCALES
        for each in scaled(kernel, *size, antialias)
    ),
    case("ScaleAndTranslate", lambda x: tf.image.resize(x, (3, 4), antialias=True), (IMAGE * 40).astype(np.uint8)),
]
