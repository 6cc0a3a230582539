"""fluid.io: loaders and readers of data."""

from __future__ import annotations

from typing import Any

from .dataloader import DataLoader, PyReader
from .errors import near
from .layers.missing import Missing
from .reader import (
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

_SAVING = {
    "get_program_parameter", "get_program_persistable_vars", "load", "load_inference_model", "load_params",
    "load_persistables", "load_program_state", "load_vars", "save", "save_inference_model", "save_params",
    "save_persistables", "save_vars", "set_program_state",
}  # fmt: skip

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


def __getattr__(name: str) -> Any:
    if name in _SAVING:
        raise Missing(
            f"fluid.io.{name} is not there; read values with scope.get(name) and keep them with numpy.savez, and programs "
            "with serialize_to_string"
        )
    raise AttributeError(f"fluid.io has no {name!r}{near(name, __all__)}")
