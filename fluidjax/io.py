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

_SAVING = frozenset(
    "save load save_vars save_params save_persistables load_vars load_params load_persistables save_inference_model "
    "load_inference_model load_program_state set_program_state get_program_parameter get_program_persistable_vars".split()
)

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
