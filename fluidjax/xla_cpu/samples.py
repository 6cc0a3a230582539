"""Decides whether a prediction on a batch of images runs image by image.

The values of one image between two ops fit into a cache. The memory of a whole batch is returned to
the system after every call, and the system must clear each page again at its next first use. In CPU
ms of one core, a batch of 8 at once and image by image: MobileNet-v1 91 and 75, PP-OCRv4 rec 136
and 78, det 650 and 420.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from ..ir.desc import OpDesc

LEAST = 1 << 14  # elements of an image: with fewer, the products of one image are too small
# Elements of filters for each element of an image, because filters are read again for each image.
MOST_FILTERS = 64
CONVOLUTIONS = ("conv2d", "depthwise_conv2d")


def are_images(ops: Sequence[OpDesc]) -> bool:
    """Whether the ops predict with convolutions."""
    kinds = {op.type for op in ops}
    return not kinds.isdisjoint(CONVOLUTIONS) and not any(k.endswith("_grad") for k in kinds)


def pay(ops: Sequence[OpDesc], state: Mapping[str, Any], images: Iterable[Any]) -> bool:
    """Whether image by image is faster: images [N, a, b, c] go into convolutions whose filters are
    not much larger than an image.
    """
    images = list(images)
    if not are_images(ops):
        return False
    if any(v.ndim != 4 or not jnp.issubdtype(v.dtype, jnp.floating) for v in images):
        return False
    numbers = sum(math.prod(v.shape[1:]) for v in images)
    filters = sum(math.prod(jnp.shape(v)) for v in state.values())
    return numbers >= LEAST and filters <= MOST_FILTERS * numbers
