"""Cases of ops that choose boxes, transform images, and find where the largest elements are, as in `cases`."""

import numpy as np
import tensorflow as tf

from tests.importers.tensorflow.cases import IMAGE, Case, case, ints, normal, positive, raw

CORNERS = positive(9, 2)
BOXES = np.concatenate([CORNERS, CORNERS + positive(9, 2) / 2], 1)
SCORES = np.float32([0.3, 0.9, 0.9, np.nan, 0.5, 0.7, 0.6, -0.2, 0.5])
NONE = np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
HALVES = BOXES.astype(np.float16), SCORES.astype(np.float16)
PADDED = {"max_output_size": 6, "pad_to_max_output_size": True}
FLAGS = (False, True)


def softly(boxes: np.ndarray, scores: np.ndarray, sigma: float, **given: object) -> Case:
    given = {"max_output_size": 5, "score_threshold": 0.1, **given}
    given = {name: np.asarray(x, scores.dtype) if "threshold" in name else x for name, x in given.items()}
    limit, sigma = np.asarray(0.4, scores.dtype), np.asarray(sigma, scores.dtype)
    return case(
        "NonMaxSuppressionV5",
        lambda b, s, n: raw.NonMaxSuppressionV5(boxes=b, scores=s, iou_threshold=limit, soft_nms_sigma=n, **given),
        *(boxes, scores, sigma),
    )


SUPPRESSED = [
    *(softly(BOXES, SCORES, sigma) for sigma in (0, 0.1, 0.5)),
    *(softly(BOXES, SCORES, sigma, **PADDED) for sigma in (0, 0.5)),
    *(softly(*HALVES, sigma, score_threshold=-np.inf, max_output_size=20) for sigma in (0, 0.5)),
    *(softly(*NONE, sigma, **padded) for sigma in (0, 0.5) for padded in ({}, PADDED)),
    softly(BOXES, SCORES, 0.5, max_output_size=0),
    case(
        "NonMaxSuppressionV5",
        lambda b, s: tf.image.non_max_suppression_with_scores(b, s, 5, 0.4, 0.1),
        *(BOXES, SCORES),
    ),
    case(
        "NonMaxSuppressionV4",
        lambda b, s: raw.NonMaxSuppressionV4(
            boxes=b, scores=s, max_output_size=5, iou_threshold=0.4, score_threshold=0.1
        ),
        *(BOXES, SCORES),
    ),
    *(case("NonMaxSuppressionV3", lambda b, s: tf.image.non_max_suppression(b, s, 5), *x) for x in ((BOXES, SCORES),)),
    case("NonMaxSuppressionV3", lambda b, s: tf.image.non_max_suppression(b, s, 5, 0.3, 0.2), *NONE),
    *(
        case(
            "NonMaxSuppressionV2",
            lambda b, s: raw.NonMaxSuppressionV2(
                boxes=b, scores=s, max_output_size=9, iou_threshold=np.asarray(0.4, s.dtype.as_numpy_dtype)
            ),
            *given,
        )
        for given in ((BOXES, SCORES), HALVES)
    ),
    case(
        "NonMaxSuppression",
        lambda b, s: raw.NonMaxSuppression(boxes=b, scores=s, max_output_size=4, iou_threshold=0.2),
        *(BOXES, SCORES),
    ),
    *(
        case(
            "NonMaxSuppressionWithOverlaps",
            lambda x, s: tf.image.non_max_suppression_overlaps(x, s, 6, 0.5, 0.1),
            *given,
        )
        for given in ((positive(9, 9), SCORES), (np.zeros((0, 0), np.float32), NONE[1]))
    ),
    *(
        case(
            "CombinedNonMaxSuppression",
            lambda b, s, each=each, total=total, pad=pad, clip=clip: tf.image.combined_non_max_suppression(
                b, s, each, total, 0.3, 0.2, pad, clip
            ),
            *(np.stack([BOXES * 1.2 - 0.1] * 2)[:, :, None][:, :, [0] * q] * positive(2, 9, q, 1), SPREAD),
        )
        for SPREAD in (np.random.default_rng(1).permutation(54).reshape(2, 9, 3).astype(np.float32) / 54,)
        for each, total, pad, clip, q in ((2, 5, False, True, 1), (20, 30, True, False, 3), (4, 30, False, True, 3))
    ),
]


def transformed(images: np.ndarray, mode: str, kind: str, count: int) -> Case:
    transforms = np.float32([[1.2, 0.3, -2.1, -0.4, 0.8, 1.3, 0.03, -0.02], [1, 0, 3, 0, 1, -2, -0.5, 0]])[:count]
    return case(
        "ImageProjectiveTransformV3",
        lambda x, t: raw.ImageProjectiveTransformV3(
            images=x, transforms=t, output_shape=[9, 5], fill_value=7.5, interpolation=kind, fill_mode=mode
        ),
        *(images, transforms),
    )


TRANSFORMED = [
    *(
        transformed(images, mode, kind, count)
        for mode in ("CONSTANT", "NEAREST", "REFLECT", "WRAP")
        for kind in ("BILINEAR", "NEAREST")
        for images, count in ((IMAGE, 1), ((IMAGE * 99).astype(np.int32), 2), (IMAGE[:, :1, :3], 2))
    ),
    transformed((IMAGE * 20 + 100).astype(np.uint8), "REFLECT", "BILINEAR", 2),
    transformed(IMAGE.astype(np.float16), "CONSTANT", "NEAREST", 1),
    case(
        "ImageProjectiveTransformV2",
        lambda x, t: raw.ImageProjectiveTransformV2(
            images=x, transforms=t, output_shape=[4, 4], interpolation="BILINEAR", fill_mode="CONSTANT"
        ),
        *(IMAGE, np.float32([[1, 0.1, -1, 0.2, 0.9, 0.5, 0, 0.01]])),
    ),
]
TIED = ints(*np.random.default_rng(2).integers(0, 4, 2 * 5 * 6 * 3)).reshape(2, 5, 6, 3)
UNCLEAR = np.where(TIED == 2, np.nan, np.where(TIED == 1, -np.inf, TIED)).astype(np.float32)
POOLED = [
    case(
        "MaxPoolWithArgmax",
        lambda x, size=size, stride=stride, padding=padding, whole=whole, kind=kind: raw.MaxPoolWithArgmax(
            input=x,
            ksize=[1, size, size, 1],
            strides=[1, stride, stride, 1],
            padding=padding,
            Targmax=kind,
            include_batch_in_index=whole,
        ),
        images,
    )
    for images in (IMAGE, TIED, UNCLEAR)
    for size, stride, padding, whole, kind in (
        *((2, 2, "VALID", False, tf.int64), (3, 2, "SAME", True, tf.int32)),
        *((3, 1, "SAME", False, tf.int64), (2, 3, "VALID", True, tf.int64)),
    )
] + [
    case(
        "MaxPoolGradWithArgmax",
        lambda x, g, at, whole=whole: raw.MaxPoolGradWithArgmax(
            input=x,
            grad=g,
            argmax=at,
            ksize=[1, 3, 3, 1],
            strides=[1, 2, 2, 1],
            padding="SAME",
            include_batch_in_index=whole,
        ),
        *(IMAGE, normal(2, 3, 4, 4)),
        tf.nn.max_pool_with_argmax(IMAGE, 3, 2, "SAME", include_batch_in_index=whole)[1].numpy(),
    )
    for whole in FLAGS
]

DETECTION_CASES: list[Case] = [*SUPPRESSED, *TRANSFORMED, *POOLED]
