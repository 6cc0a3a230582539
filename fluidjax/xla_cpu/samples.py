"""Whether a prediction on a batch of images is made image by image.

What one image needs between two ops fits a cache, and the memory of a whole batch is given back to
the system after every call: a page of it is made anew at each first touch. In CPU ms of one core,
batch 8 as one and image by image: MobileNet-v1 91 and 75, PP-OCRv4 rec 136 and 78, det 650 and 420.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp

from ..ir.desc import OpDesc

LEAST = 1 << 14  # numbers of an image: with fewer, products of one image are too small
# Numbers of filters for each number of an image: they are read again for each image.
MOST_FILTERS = 64
CONVOLUTIONS = ("conv2d", "depthwise_conv2d")


def are_images(ops: Sequence[OpDesc]) -> bool:
    """Whether the ops predict with convolutions."""
    kinds = {op.type for op in ops}
    return not kinds.isdisjoint(CONVOLUTIONS) and not any(k.endswith("_grad") for k in kinds)


def pay(ops: Sequence[OpDesc], state: Mapping[str, Any], images: Iterable[Any]) -> bool:
    """Whether it is faster image by image: images [N, a, b, c] go into convolutions whose filters
    are not much larger than an image.
    """
    images = list(images)
    if not are_images(ops):
        return False
    if any(v.ndim != 4 or not jnp.issubdtype(v.dtype, jnp.floating) for v in images):
        return False
    numbers = sum(math.prod(v.shape[1:]) for v in images)
    filters = sum(math.prod(jnp.shape(v)) for v in state.values())
    return numbers >= LEAST and filters <= MOST_FILTERS * numbers
