"""Batches for the benchmark models, the same for both sides."""

from __future__ import annotations

import numpy as np


def images(batch: int, size: int, channels: int, classes: int = 10) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "img": rng.standard_normal((batch, size, size, channels), dtype=np.float32),
        "label": rng.integers(0, classes, (batch, 1)),
    }


def vectors(batch: int, width: int, classes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "x": rng.standard_normal((batch, width), dtype=np.float32),
        "label": rng.integers(0, classes, (batch, 1)),
    }


def sequences(batch: int, length: int, width: int, classes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "x": rng.standard_normal((batch, length, width), dtype=np.float32),
        "label": rng.integers(0, classes, (batch, length, 1)),
    }


def words(batch: int, context: int, vocabulary: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "words": rng.integers(0, vocabulary, (batch, context, 1)),
        "label": rng.integers(0, vocabulary, (batch, 1)),
    }
