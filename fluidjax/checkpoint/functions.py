"""``fluid.io.save_checkpoint`` and related functions: one call each, for jobs with one folder of
checkpoints.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from ..executor import Executor
from ..graph.program import Program
from ..loaders.position import Positioned
from ..state.scope import Scope
from .folder import Checkpoint
from .restore import Restored

_folders: dict[str, Checkpoint] = {}  # folders that were saved to, which may still be written


def _folder(checkpoint_dir: str | os.PathLike[str]) -> Checkpoint:
    made = Checkpoint(checkpoint_dir)
    return _folders.get(str(made.path), made)


def save_checkpoint(
    executor: Executor,
    checkpoint_dir: str | os.PathLike[str],
    main_program: Program | None = None,
    step: int | None = None,
    reader: Positioned | None = None,
    trainer_args: Mapping[str, Any] | None = None,
    scope: Scope | None = None,
    max_num_checkpoints: int | None = 3,
    asynchronous: bool = True,
) -> int:
    """Save a checkpoint of a running job and return its step; see Checkpoint.save.

    max_num_checkpoints: the number of newest checkpoints to keep; None keeps all. asynchronous:
    return after the values are copied; the next call, wait_checkpoint() or the end of the process
    waits for the files.
    """
    found, wish = (
        _folder(checkpoint_dir),
        Checkpoint(checkpoint_dir, max_num_checkpoints, asynchronous),
    )
    if found.keep != wish.keep:
        found.close()
    found.keep, found.asynchronous = wish.keep, wish.asynchronous
    _folders[str(found.path)] = found
    return found.save(executor, main_program, step, reader, trainer_args, scope)


def load_checkpoint(
    executor: Executor,
    checkpoint_dir: str | os.PathLike[str],
    main_program: Program | None = None,
    step: int | None = None,
    reader: Positioned | None = None,
    scope: Scope | None = None,
    strict: bool = True,
    shardings: Mapping[str, Any] | None = None,
) -> Restored:
    """Restore a checkpoint, by default the latest complete one, and return a Restored; see
    Checkpoint.restore.
    """
    return _folder(checkpoint_dir).restore(
        executor, main_program, step, reader, scope, strict, shardings
    )


def get_latest_checkpoint_serial(checkpoint_dir: str | os.PathLike[str]) -> int:
    """The step of the latest complete checkpoint, or -1."""
    latest = _folder(checkpoint_dir).latest()
    return -1 if latest is None else latest


def wait_checkpoint(checkpoint_dir: str | os.PathLike[str]) -> None:
    """Wait until the files of save_checkpoint are written. Raises LoadError if writing failed."""
    _folder(checkpoint_dir).wait()


def clean_checkpoint(
    checkpoint_dir: str | os.PathLike[str], delete_dir: bool = False, after: int | None = None
) -> None:
    """Remove all checkpoints of a folder, or those of later steps than `after`. delete_dir: also
    remove the folder if it is empty then.
    """
    folder = _folder(checkpoint_dir)
    folder.clean(after)
    _folders.pop(str(folder.path), None)
    if delete_dir and after is None and folder.path.is_dir() and not os.listdir(folder.path):
        shutil.rmtree(folder.path)


__all__ = [
    "clean_checkpoint",
    "get_latest_checkpoint_serial",
    "load_checkpoint",
    "save_checkpoint",
    "wait_checkpoint",
]
