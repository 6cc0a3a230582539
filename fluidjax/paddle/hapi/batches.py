"""The batches of paddle.Model: of a data set whose samples are asked for by number, or of what
gives batches itself.
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

    data: with ``__getitem__`` and ``__len__``, a data set of samples, which are put together;
    anything else that can be iterated gives batches. Raises FluidTypeError for what is neither.
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
