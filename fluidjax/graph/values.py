"""The values of a program's persistable variables in a scope, by name: Program.state_dict and
set_state_dict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..base.loc import warn
from ..errors import FluidTypeError, FluidValueError
from ..state.scope import Scope, global_scope
from .variable import Parameter, Variable

MODES = ("param", "opt", "all")


def held(variables: Iterable[Variable], mode: str, scope: Scope | None) -> dict[str, Any]:
    """The tensors of Parameters ("param"), of the other persistable variables ("opt"), or of both
    ("all").

    Raises FluidValueError for another mode, and for a variable without a value.
    """
    if mode not in MODES:
        raise FluidValueError(f"Program.state_dict's mode is 'param', 'opt' or 'all', not {mode!r}")
    where = _scope(scope)
    found = {}
    for var in _persistable(variables):
        if mode != "all" and isinstance(var, Parameter) != (mode == "param"):
            continue
        value = where.find_var(var.name)
        if value is None or value.value is None:
            raise FluidValueError(
                f"variable {var.name!r} has no value in the scope; run the startup program"
            )
        found[var.name] = value.get_tensor()
    return found


def put(variables: Iterable[Variable], state_dict: Any, scope: Scope | None) -> None:
    """Store values by name in the scope. Names that are not persistable variables of the program
    are ignored with a warning.

    Raises FluidTypeError for anything but a dict, FluidValueError for a value of another shape;
    then nothing is set.
    """
    if not isinstance(state_dict, Mapping):
        raise FluidTypeError(
            "Program.set_state_dict takes a dict of values by name, not"
            f" {type(state_dict).__name__}"
        )
    known = {var.name: var for var in _persistable(variables)}
    given = {name: np.asarray(value) for name, value in state_dict.items() if name in known}
    for name, value in given.items():
        want = known[name].shape
        if len(want) != value.ndim or any(
            n not in (-1, have) for n, have in zip(want, value.shape, strict=True)
        ):
            raise FluidValueError(
                f"{name!r} has shape {list(want)}, but its value has {list(value.shape)}"
            )
    unknown = [name for name in state_dict if name not in known]
    if unknown:
        warn(
            f"set_state_dict passes over {', '.join(map(repr, unknown))}: no persistable variable"
            " of the program"
        )
    where = _scope(scope)
    for name, value in given.items():
        where.var(name).set(value.astype(known[name].desc.dtype))


def _scope(scope: Scope | None) -> Scope:
    if scope is not None and not isinstance(scope, Scope):
        raise FluidTypeError(f"the scope of a program's values is a fluid.Scope, not {scope!r}")
    return global_scope() if scope is None else scope


def _persistable(variables: Iterable[Variable]) -> Iterator[Variable]:
    """Persistable variables that hold tensors, without duplicates."""
    seen = set()
    for var in variables:
        if var.persistable and var.desc.kind == "LOD_TENSOR" and var.name not in seen:
            seen.add(var.name)
            yield var
