"""fluid.layers.utils: nested structures (lists, tuples, dicts) of variables or any other values.

Leaves are in order; those of a dict in the order of its sorted keys. Strings are leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import FluidTypeError, FluidValueError


def is_sequence(seq: Any) -> bool:
    """Whether this has leaves: a dict, or a sequence other than a string."""
    return isinstance(seq, Mapping) or (isinstance(seq, Sequence) and not isinstance(seq, str))


def _parts(structure: Any) -> list[Any]:
    return (
        [structure[k] for k in sorted(structure)]
        if isinstance(structure, Mapping)
        else list(structure)
    )


def flatten(nest: Any) -> list[Any]:
    """The leaves of a structure; a list with the leaf for a single one."""
    return (
        [leaf for part in _parts(nest) for leaf in flatten(part)] if is_sequence(nest) else [nest]
    )


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """`structure` with these leaves. Raises FluidTypeError if they are not a list, FluidValueError
    if their number differs.
    """
    if not is_sequence(flat_sequence):
        raise FluidTypeError(f"pack_sequence_as takes a list of leaves, not {flat_sequence!r}")
    wanted = len(flatten(structure))
    if len(flat_sequence) != wanted:
        raise FluidValueError(
            f"the structure has {wanted} leaves, but {len(flat_sequence)} were given"
        )
    return _packed(structure, iter(flat_sequence))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_sequence(structure):
        return next(leaves)
    parts = [_packed(part, leaves) for part in _parts(structure)]
    if isinstance(structure, Mapping):
        found = dict(zip(sorted(structure), parts, strict=True))
        return type(structure)((k, found[k]) for k in structure)  # type: ignore[call-arg]
    return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)


def map_structure(func: Callable[..., Any], *structure: Any) -> Any:
    """The structure of func(leaf, ...) for the corresponding leaves of all structures, in the form
    of the first.
    """
    return pack_sequence_as(
        structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure), strict=True)]
    )


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raises FluidValueError if two structures differ in form or in keys, FluidTypeError if in
    types.
    """
    if is_sequence(nest1) != is_sequence(nest2) or len(flatten(nest1)) != len(flatten(nest2)):
        raise FluidValueError(f"the structures differ: {nest1!r} and {nest2!r}")
    if not is_sequence(nest1):
        return
    if check_types and type(nest1) is not type(nest2):
        raise FluidTypeError(
            f"the structures are of different types: {type(nest1).__name__}, {type(nest2).__name__}"
        )
    if isinstance(nest1, Mapping) and set(nest1) != set(nest2):
        raise FluidValueError(
            f"the structures have different keys: {sorted(nest1)} and {sorted(nest2)}"
        )
    first, second = _parts(nest1), _parts(nest2)
    if len(first) != len(second):
        raise FluidValueError(f"the structures differ: {nest1!r} and {nest2!r}")
    for one, other in zip(first, second, strict=True):
        assert_same_structure(one, other, check_types)


def convert_to_list(value: Any, n: int, name: str, dtype: type = int) -> list[Any]:
    """`n` values from one or from n of them. Raises FluidValueError for another number, or a value
    that is not a `dtype`.
    """
    message = f"{name} is a {dtype.__name__} or a list of {n}, not {value!r}"
    if isinstance(value, dtype):
        return [value] * n
    values = list(value) if isinstance(value, Iterable) else []
    if len(values) != n:
        raise FluidValueError(message)
    try:
        for v in values:
            dtype(v)
    except (TypeError, ValueError):
        raise FluidValueError(message) from None
    return values


__all__ = [
    "assert_same_structure", "convert_to_list", "flatten", "is_sequence", "map_structure", "pack_sequence_as",
]  # fmt: skip
