"""Checks for feeds whose dtypes and shapes differ from the declared ones, which Fluid passes on to
the ops. Most ops treat them as any array.

But 1.8.5's kernels have one dtype, and JAX would promote: a float64 image would turn float32
parameters into float64 ones. Inputs of an op that are declared with one dtype must therefore have
one dtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..base.dtypes import numpy_dtype
from ..base.loc import warn
from ..errors import EnforceNotMet
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from ..ops.ragged import rows_of


def fits_within(got: np.dtype, want: np.dtype) -> bool:
    """Whether a dtype holds every number of another one of its kind: integers in more bits, or
    floats.
    """
    same_kind = got.kind == want.kind == "f" or (got.kind in "iu" and want.kind in "iu")
    return same_kind and np.can_cast(got, want)


def are_unlike(feed: Mapping[str, Any], feeds: Mapping[str, VarDesc]) -> bool:
    """Whether a feed's dtype or shape differs from its variable's declaration."""
    return any(_unlike(rows_of(feed[name]), var) for name, var in feeds.items() if name in feed)


def _unlike(value: Any, var: VarDesc) -> bool:
    if var.persistable:
        return False
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if var.need_check_feed:  # the feed's rule has compared the rest
        return shape is not None and var.shape is not None and len(shape) < len(var.shape)
    other = dtype is not None and var.dtype is not None and dtype != numpy_dtype(var.dtype)
    return other or (
        shape is not None and var.shape is not None and not _may_be_equal(tuple(shape), var.shape)
    )


def look(op: OpDesc, inputs: Mapping[str, Any], desc: ProgramDesc) -> None:
    """Raises EnforceNotMet for an op, except gradient ops, whose inputs differ in dtype or shape
    although the program declares them alike. The elementwise ops, which broadcast as in Fluid, only
    warn of a possible mistake.
    """
    first: dict[str, tuple[str, np.dtype]] = {}
    for name, declared, got in _typed(op, inputs, desc):
        other, dtype = first.setdefault(declared, (name, got))
        if dtype != got:
            raise EnforceNotMet(
                f"op '{op.type}' takes {other!r} and {name!r} of one dtype, {declared} as declared,"
                f" but they are {dtype.name} and {got.name}"
            )
    if op.type.startswith("elementwise_"):
        _warn_of_broadcast(op, inputs, desc)
    elif not op.type.startswith("matmul"):
        _refuse_shapes(op, inputs, desc)


def _typed(
    op: OpDesc, inputs: Mapping[str, Any], desc: ProgramDesc
) -> Iterator[tuple[str, str, np.dtype]]:
    """Name, declared dtype and dtype of each array among the op's inputs."""
    for slot, names in op.inputs.items():
        for name, value in zip(names, _given(inputs, slot), strict=False):
            var, dtype = desc.find_var(name), getattr(rows_of(value), "dtype", None)
            if var is not None and var.dtype is not None and dtype is not None:
                yield name, var.dtype, np.dtype(dtype)


def _given(inputs: Mapping[str, Any], slot: str) -> list[Any]:
    """The values of a slot, also of one that takes a single value."""
    values = inputs.get(slot)
    return values if isinstance(values, list) else [values]


def _refuse_shapes(op: OpDesc, inputs: Mapping[str, Any], desc: ProgramDesc) -> None:
    known: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []
    for slot, names in op.inputs.items():
        if len(names) != 1:
            continue
        var = desc.find_var(names[0])
        shape = getattr(rows_of(_given(inputs, slot)[0]), "shape", None)
        if var is None or not var.shape or shape is None:
            continue
        for other, declared, its in known:
            if _may_be_equal(declared, var.shape) and not _equal_as_declared(
                declared, var.shape, its, shape
            ):
                raise EnforceNotMet(
                    f"op '{op.type}' takes {other!r} and {names[0]!r} of like shapes,"
                    f" {list(declared)} and {list(var.shape)} as declared, but they are {list(its)}"
                    f" and {list(shape)}"
                )
        known.append((names[0], var.shape, shape))


def _may_be_equal(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two declared shapes may be the same."""
    return len(one) == len(other) and all(
        a == b or min(a, b) < 0 for a, b in zip(one, other, strict=True)
    )


def _equal_as_declared(
    one: tuple[int, ...], other: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]
) -> bool:
    """Whether two shapes have equal numbers of dimensions, and equal sizes where the declared sizes
    are equal.
    """
    return len(a) == len(b) and all(
        m != n or min(m, n) < 0 or k == j for m, n, k, j in zip(one, other, a, b, strict=False)
    )


def _warn_of_broadcast(op: OpDesc, inputs: Mapping[str, Any], desc: ProgramDesc) -> None:
    x, y = (np.shape(rows_of(inputs.get(slot))) for slot in ("X", "Y"))
    vars = [desc.find_var(op.input(slot)[0]) for slot in ("X", "Y")]
    ranks = {len(v.shape) for v in vars if v is not None and v.shape is not None}
    small, large = sorted((x, y), key=len)
    if len(ranks) == 1 and np.prod(small) > 1 and small != large[len(large) - len(small) :]:
        warn(
            f"op '{op.type}' ({op.loc or 'no line'}) broadcasts {list(x)} and {list(y)}, since a"
            " feed has another number of dimensions than declared, as Paddle does; is that meant?",
            RuntimeWarning,
        )
