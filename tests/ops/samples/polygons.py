"""Suppression of polygons that are not maxima: of four and eight corners, one of which points
inwards, equal ones, ones without area.
"""

import numpy as np

from ..sample import Sample

BASE = {
    "score_threshold": 0.1,
    "nms_top_k": 8,
    "nms_threshold": 0.3,
    "keep_top_k": 6,
    "background_label": -1,
    "nms_eta": 1.0,
}


def star(corners, inward=1.0, dtype="float32", n=6, seed=0):
    """Polygons around some points, turned by chance; the second corner lies at `inward` of the
    radius. The last two are equal.
    """
    random = np.random.RandomState(seed)
    turn = random.uniform(0, 6, (n, 1)) + np.arange(corners) * 2 * np.pi / corners
    radius = random.uniform(1.5, 3, (n, 1)) * np.where(np.arange(corners) == 1, inward, 1)
    at = random.uniform(0, 4, (n, 2))
    points = np.stack([at[:, :1] + radius * np.cos(turn), at[:, 1:] + radius * np.sin(turn)], -1)
    points[-1] = points[-2]
    return points.round(2).reshape(1, n, 2 * corners).astype(dtype)


def sample(kind, polygons, **attrs):
    n = polygons.shape[1]
    scores = (
        np.linspace(0.9, 0.2, n)
        .reshape(1, 1, n)[..., np.random.RandomState(n).permutation(n)]
        .astype(polygons.dtype)
    )
    return Sample(kind, {"BBoxes": polygons, "Scores": scores}, dict(BASE, **attrs), ["Out"])


FLAT = star(4, n=4)
FLAT[0, :2] = 1.0  # points
SAMPLES = [
    sample("multiclass_nms", star(4)),
    sample("multiclass_nms", star(8, 0.3, "float64"), nms_threshold=0.2),
    sample("multiclass_nms", FLAT, nms_eta=0.7, nms_threshold=0.6),
    sample(
        "multiclass_nms",
        star(4)[:, :, [6, 7, 4, 5, 2, 3, 0, 1]],
        nms_threshold=0.1,
        normalized=False,
    ),
    sample("locality_aware_nms", star(4, n=5, seed=1)),
    sample("locality_aware_nms", star(16, 0.5, n=4, seed=2)),
]
