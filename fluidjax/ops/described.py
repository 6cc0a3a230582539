"""Errors that an op raises, with the op and the user's line added."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax

from ..errors import EnforceNotMet, FluidError, FluidTypeError, NotOneStep, note
from ..ir import text
from ..ir.desc import OpDesc
from .definition import OpDef
from .infer import infer, specs_of
from .objection import refusal
from .ragged import rows_of
from .registry import control
from .step_scopes import NotRun, Scopes


@contextlib.contextmanager
def described(op: OpDesc) -> Iterator[None]:
    """Add the op's text and the user's line to any error raised within."""
    try:
        yield
    except FluidError as exc:
        if isinstance(exc, NotOneStep) and exc.uid is None:
            exc.uid = op.uid
        raise note(exc, text.op_noted(op)) from exc.__cause__
    except Exception as exc:
        if control(op.type).lower is not None and _is_ours(exc):
            what = f"{type(exc).__name__}: {str(exc)[:100]}"
            raise note(
                EnforceNotMet(
                    f"op '{op.type}' lacks what it needs in one of its slots or attributes ({what})"
                ),
                text.op_noted(op),
            ) from exc
        raise note(exc, text.op_noted(op))  # noqa: B904


def _is_ours(exc: Exception) -> bool:
    """Whether the error comes from the package's own code (for instance, over slots that a file
    left empty), not from a function of the user's.
    """
    at = exc.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    ours = at is not None and at.tb_frame.f_globals.get("__name__", "").startswith("fluidjax.")
    return ours and isinstance(
        exc, TypeError | ValueError | LookupError | ArithmeticError | AttributeError
    )


@contextlib.contextmanager
def answered(
    definition: OpDef, inputs: Mapping[str, Any], attrs: Mapping[str, Any]
) -> Iterator[None]:
    """Raises an error of JAX or Python in a fluidjax op as the error of the op's shape rule, or as
    a ShapeError.

    A step knows all sizes; those that the program left open have not been checked before.
    """
    try:
        yield
    except (FluidError, jax.errors.JAXTypeError, jax.errors.JAXIndexError):
        raise
    except (
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
        AttributeError,
        MemoryError,
    ) as exc:
        if not getattr(definition.fn, "__module__", "").startswith("fluidjax."):
            raise
        for slot, value in inputs.items():
            if any(map(_is_scope, value if isinstance(value, list) else (value,))):
                raise FluidTypeError(
                    f"op '{definition.type}' takes tensors, but its input {slot} is what a block left"
                    " for its gradient"
                ) from exc
        given = {s: rows_of(v) for s, v in inputs.items()}
        if definition.infer is not None and _have_shapes(given):
            try:
                infer(definition, specs_of(given), attrs)
            except FluidError as better:
                raise better from exc
        raise refusal(definition.type, given, exc) from exc


def _have_shapes(given: Mapping[str, Any]) -> bool:
    """Whether a shape rule can be applied: a list may lack some of its tensors."""
    lists = (v if isinstance(v, list | tuple) else (v,) for v in given.values() if v is not None)
    return all(hasattr(v, "shape") for each in lists for v in each)


def _is_scope(value: Any) -> bool:
    return isinstance(value, NotRun | Scopes | dict)
