"""paddle.static.save_inference_model and load_inference_model: PREFIX.pdmodel and PREFIX.pdiparams."""

from __future__ import annotations

import os
from typing import Any

from ...errors import FluidValueError
from ...graph.program import Program
from ...saved import model


def _split(path_prefix: str) -> tuple[str, str]:
    folder, name = os.path.split(path_prefix)
    if not name or name in (".", ".."):
        raise FluidValueError(
            f"path_prefix is a folder and the beginning of a file's name, not {path_prefix!r}"
        )
    return folder or ".", name


def save_inference_model(
    path_prefix: str, feed_vars: Any, fetch_vars: Any, executor: Any, program: Program | None = None
) -> None:
    """Save the part of a program (default: the default main program) that computes `fetch_vars`
    from `feed_vars`.

    PREFIX.pdmodel holds the program, PREFIX.pdiparams the values of its persistable variables.
    Raises the errors of fluid.io.save_inference_model.
    """
    folder, name = _split(path_prefix)
    feeds = feed_vars if isinstance(feed_vars, list | tuple) else [feed_vars]
    names: list[Any] = [getattr(v, "name", v) for v in feeds]
    model.save_inference_model(
        folder, names, fetch_vars, executor, program, f"{name}.pdmodel", f"{name}.pdiparams"
    )


def load_inference_model(path_prefix: str, executor: Any) -> list[Any]:
    """[program, feed names, fetch variables] of PREFIX.pdmodel; values go into the global scope.

    Raises the errors of fluid.io.load_inference_model.
    """
    folder, name = _split(path_prefix)
    return model.load_inference_model(folder, executor, f"{name}.pdmodel", f"{name}.pdiparams")
