"""scikit-learn's handwritten digits: 1,797 real images of 8x8 pixels, ten classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

TEST_IMAGES = 360
BATCH = 64
EPOCHS = 30
LEARNING_RATE = 2e-3


@dataclass(frozen=True)
class Digits:
    """Images as float32 (count, 8, 8) in [0, 1], labels as int64."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load_digits() -> Digits:
    """Loads the images, shuffled and split with seed 0; the split is stratified by class."""
    from sklearn import datasets
    from sklearn.model_selection import train_test_split

    digits = datasets.load_digits()
    images = (digits.images / 16).astype(np.float32)
    parts = train_test_split(
        images, digits.target.astype(np.int64), test_size=TEST_IMAGES, stratify=digits.target, random_state=0
    )
    train_images, test_images, train_labels, test_labels = parts
    return Digits(train_images, train_labels, test_images, test_labels)


def batches(digits: Digits, epoch: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields one pass over the training images, in a different order for each epoch; the last batch is smaller."""
    order = np.random.default_rng(epoch).permutation(len(digits.train_labels))
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        yield digits.train_images[chosen], digits.train_labels[chosen]


def batches_in_all(digits: Digits) -> int:
    """Returns the number of training steps."""
    return EPOCHS * -(-len(digits.train_labels) // BATCH)
