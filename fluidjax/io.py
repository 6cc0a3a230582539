"""fluid.io: loaders and readers of data; saving and loading of programs and their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base.absent import reporter
from .base.log_writer import LogWriter
from .checkpoint import AutoCheckpoint, Checkpoint
from .checkpoint.functions import (
    clean_checkpoint,
    get_latest_checkpoint_serial,
    load_checkpoint,
    save_checkpoint,
    wait_checkpoint,
)
from .graph.block import Block
from .graph.variable import Variable
from .loaders.by_length import batch_by_length
from .loaders.collate import default_collate_fn
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
from .loaders.position import Position, resumable
from .loaders.samples import BatchSampler, Dataset
from .saved.model import load_inference_model, save_inference_model
from .saved.programs import load, load_program_state, save, set_program_state
from .saved.safe import load_safetensors, save_safetensors
from .saved.values import is_belong_to_optimizer, is_parameter, is_persistable
from .saved.vars import (
    get_parameter_value,
    get_parameter_value_by_name,
    get_program_parameter,
    get_program_persistable_vars,
    load_params,
    load_persistables,
    load_vars,
    save_params,
    save_persistables,
    save_vars,
)


def _clone_var_in_block_(block: Block, var: Variable) -> Variable:
    """Create a persistable variable in a block like `var`: name, shape, dtype, type and, for a
    tensor, lod_level.
    """
    lod = {"lod_level": var.lod_level} if var.desc.kind == "LOD_TENSOR" else {}
    return block.create_var(
        name=var.name, shape=var.shape, dtype=var.dtype, type=var.type, persistable=True, **lod
    )


__all__ = [
    "AutoCheckpoint",
    "BatchSampler",
    "Checkpoint",
    "ComposeNotAligned",
    "DataLoader",
    "Dataset",
    "LogWriter",
    "Position",
    "PyReader",
    "batch",
    "batch_by_length",
    "buffered",
    "cache",
    "chain",
    "clean_checkpoint",
    "compose",
    "default_collate_fn",
    "firstn",
    "get_latest_checkpoint_serial",
    "get_parameter_value",
    "get_parameter_value_by_name",
    "get_program_parameter",
    "get_program_persistable_vars",
    "is_belong_to_optimizer",
    "is_parameter",
    "is_persistable",
    "load",
    "load_checkpoint",
    "load_inference_model",
    "load_params",
    "load_persistables",
    "load_program_state",
    "load_safetensors",
    "load_vars",
    "map_readers",
    "multiprocess_reader",
    "resumable",
    "save",
    "save_checkpoint",
    "save_inference_model",
    "save_params",
    "save_persistables",
    "save_safetensors",
    "save_vars",
    "set_program_state",
    "shuffle",
    "wait_checkpoint",
    "xmap_readers",
]

if not TYPE_CHECKING:
    __getattr__ = reporter("fluid.io", __all__)
