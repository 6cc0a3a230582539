"""The threshold for clipping an activation so that its integer form is closest to it."""

from __future__ import annotations

import numpy as np

_BINS = 2048
_FIRST = int((_BINS - 1) * 0.7)  # fewer bins are not tried


def threshold(values: np.ndarray, steps: int = 255) -> float:
    """The magnitude at which to clip: the end of the histogram with the least divergence.

    values: magnitudes. For each i from 1,433 on, P is the first i of the histogram's 2,048 bins,
    with all beyond added to the last one. Q merges P's bins into `steps` bins and spreads those
    over the bins that are not empty. The Kullback-Leibler divergence of P from Q decides, as in
    TensorRT's calibration and Paddle 1.8.5.
    """
    counts, edges = np.histogram(values, bins=_BINS, range=(values.min(), values.max()))
    counts = counts.astype(np.float64)
    beyond = counts.sum() - np.cumsum(counts)
    best, least = 0, 0.0
    for kept in range(_FIRST, _BINS):
        if counts[kept - 1] == 0:  # P's last bin would hold values missing in Q
            continue
        found = _divergence(counts[:kept], beyond[kept - 1], steps)
        if not best or found < least:
            best, least = kept, found
    if not best:
        best = int(np.flatnonzero(counts[: _FIRST + 1])[-1]) if counts[: _FIRST + 1].any() else 0
    return float((best + 0.5) * (edges[1] - edges[0]))


def _divergence(counts: np.ndarray, beyond: float, steps: int) -> float:
    """The divergence from Q of P, whose last bin includes all values beyond."""
    width = len(counts) // steps
    group = np.minimum(np.arange(len(counts)) // width, steps - 1)
    there = counts > 0
    sums = np.bincount(group, counts, steps)
    shared = np.bincount(group, there, steps)
    q = (sums[group] / np.maximum(shared[group], 1))[there]
    p = counts[there].copy()
    p[-1] += beyond
    terms = (
        np.cumsum(p * np.log(np.cumsum(q)[-1] * p)),
        np.cumsum(p * np.log((counts.sum() + beyond) * q)),
    )
    return float((terms[0][-1] - terms[1][-1]) / (counts.sum() + beyond))
