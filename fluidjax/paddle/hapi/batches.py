"""The batches of paddle.Model: from a data set with samples by number, or from an iterable of
batches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import FluidTypeError
from ...loaders.collate import default_collate_fn
from .built import listed


def batches(
    data: Any, batch_size: int, shuffle: bool = False, drop_last: bool = False
) -> Iterator[list[np.ndarray]]:
    """The fields of each batch, as arrays.

    data: a data set of samples, with ``__getitem__`` and ``__len__``, which are collated; or any
    iterable of batches. Raises FluidTypeError for anything else.
    """
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        order = list(range(len(data)))
        if shuffle:
            random.shuffle(order)
        for begin in range(0, len(order), batch_size):
            chosen = order[begin : begin + batch_size]
            if drop_last and len(chosen) < batch_size:
                return
            yield [np.asarray(a) for a in listed(default_collate_fn([data[i] for i in chosen]))]
        return
    if not hasattr(data, "__iter__"):
        raise FluidTypeError(
            f"data is a data set, or gives batches when it is iterated, not {type(data).__name__}"
        )
    for batch in data:
        yield [
            np.asarray(a) for a in (batch.values() if isinstance(batch, dict) else listed(batch))
        ]
