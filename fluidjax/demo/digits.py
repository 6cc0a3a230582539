"""Handwritten digits as [n, 1, 28, 28] float32 images in -1..1 and [n, 1] int64 labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..dataset.idx import mnist

SIDE = 28
TEST_PART = 0.2  # of scikit-learn's digits


@dataclass(frozen=True)
class Digits:
    """Images to train on and images to test on; `source` says where they come from."""

    source: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load(folder: Path | None = None, seed: int = 1) -> Digits:
    """MNIST from `folder`; without one, scikit-learn's digits, a fifth of which (chosen by `seed`)
    are for the test.

    Raises FluidValueError for files that are missing or malformed.
    """
    if folder is not None:
        parts = [_prepare(*mnist(folder, part), white=255) for part in ("train", "test")]
        return Digits(f"MNIST in {folder}", *parts[0], *parts[1])
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = _prepare(_enlarge(bunch.images), bunch.target, white=16)
    order = np.random.default_rng(seed).permutation(len(images))
    cut = round(len(images) * TEST_PART)
    test, train = order[:cut], order[cut:]
    return Digits("scikit-learn's digits", images[train], labels[train], images[test], labels[test])


def _enlarge(images: np.ndarray) -> np.ndarray:
    """8 x 8 pixels as 24 x 24, with a margin of two."""
    large = images.repeat(3, axis=1).repeat(3, axis=2)
    margin = (SIDE - large.shape[1]) // 2
    return np.pad(large, ((0, 0), (margin, margin), (margin, margin)))


def _prepare(images: np.ndarray, labels: np.ndarray, white: int) -> tuple[np.ndarray, np.ndarray]:
    scaled = images.astype("float32") * (2 / white) - 1
    return scaled[:, None], labels.astype("int64")[:, None]
