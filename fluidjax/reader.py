"""paddle.reader's decorators of readers and fluid.reader's DataLoader, under one module name; loaders/ has them."""

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
    "map_readers",
    "multiprocess_reader",
    "shuffle",
    "xmap_readers",
]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.reader", __all__)
