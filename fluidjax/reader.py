"""paddle.reader's decorators of readers and fluid.reader's DataLoader, under one module name; they
are in loaders/.
"""

from typing import TYPE_CHECKING

from .base.absent import reporter
from .loaders.decorators import (
    ComposeNotAligned,
    batch,
    buffered,
    cache,
    chain,
    compose,
    firstn,
    map_readers,
    multiprocess_reader,
    shuffle,
    xmap_readers,
)
from .loaders.loader import DataLoader, PyReader


def keep_data_loader_order(value: bool) -> None:
    """Does nothing: batches come in the order of their samples, however many workers make them."""


__all__ = [
    "ComposeNotAligned",
    "DataLoader",
    "PyReader",
    "batch",
    "buffered",
    "cache",
    "chain",
    "compose",
    "firstn",
    "keep_data_loader_order",
    "map_readers",
    "multiprocess_reader",
    "shuffle",
    "xmap_readers",
]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.reader", __all__)
