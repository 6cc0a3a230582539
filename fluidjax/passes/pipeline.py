"""Pipelines given as text: ``"inference, fuse_batch_norm(probe=False), dce"``."""

from __future__ import annotations

import ast

from ..errors import FluidTypeError, FluidValueError
from .base import Pass, Pipeline, find, with_options


def parse(text: str) -> Pipeline:
    """The passes in `text`, in order; options are Python literals in brackets.

    Raises FluidValueError for malformed text, an unknown pass or an unknown option.
    """
    if not isinstance(text, str):
        raise FluidTypeError(f"a pipeline's text is a string, not {type(text).__name__}")
    try:
        items = ast.parse(f"[{text}\n]", mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        items = None
    if not isinstance(items, ast.List) or not items.elts:
        raise FluidValueError(
            f"{text!r} is not a pipeline; write passes with commas between them: 'inference,dce'"
        )
    return Pipeline(passes=tuple(_pass(item, text) for item in items.elts))


def _pass(item: ast.expr, text: str) -> Pass:
    if isinstance(item, ast.Name):
        return find(item.id)()
    if not isinstance(item, ast.Call) or not isinstance(item.func, ast.Name) or item.args:
        raise FluidValueError(
            f"{ast.unparse(item)!r} in {text!r} is not a pass; write name or name(option=value)"
        )
    options = {}
    for keyword in item.keywords:
        try:
            options[str(keyword.arg)] = ast.literal_eval(keyword.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            raise FluidValueError(
                f"option {keyword.arg} of {item.func.id!r} is not a literal: {ast.unparse(keyword)}"
            ) from None
    return with_options(find(item.func.id)(), **options)


def as_pass(pas: Pass | str) -> Pass:
    """A pass, a pipeline, or the text of one."""
    if isinstance(pas, Pass):
        return pas
    pipeline = parse(pas)
    return pipeline.passes[0] if len(pipeline.passes) == 1 else pipeline
