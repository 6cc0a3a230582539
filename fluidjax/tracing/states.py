"""Pairs the results of a function with the arguments whose new values they are.

An argument that persists is a tree of arrays. Its new value is the result, or the part of a tuple
of results, that has the same tree with arrays of the same shapes and dtypes. If several fit, the
caller must decide: a loss of shape [] and a parameter of shape [] cannot be distinguished.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from ..errors import TraceError
from .primitives import dtype_name

StateOption = str | int | Sequence[int | str] | Mapping[int | str, int | None]


@dataclass(frozen=True)
class Part:
    """An argument, or a part of the results: its name, its tree, and the types of its leaves."""

    name: str
    tree: Any
    types: tuple[tuple[tuple[int, ...], str], ...]

    @classmethod
    def of(cls, name: str, value: Any) -> Part:
        leaves, tree = jax.tree.flatten(value)
        return cls(name, tree, tuple((tuple(v.shape), dtype_name(v.dtype)) for v in leaves))

    def fits(self, other: Part) -> bool:
        return self.tree == other.tree and self.types == other.types

    @property
    def leaves(self) -> dict[str, Any]:
        """The type of each leaf, by its path."""
        numbered = jax.tree.unflatten(self.tree, range(len(self.types)))
        paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(numbered)]
        named = [jax.tree_util.keystr(path, simple=True, separator=".") for path in paths]
        return dict(zip(named, self.types, strict=True))

    @property
    def is_container(self) -> bool:
        """Whether it is more than a bare array, and holds at least one array."""
        return bool(self.types) and not jax.tree_util.treedef_is_leaf(self.tree)


def paired(
    state: StateOption, args: Sequence[Part], results: Sequence[Part], known: Mapping[int, int]
) -> dict[int, int | None]:
    """Argument -> the result that continues it, None for an argument that is only read. Other
    arguments are fed.

    state: "auto" takes the arguments (dicts, tuples and other containers of arrays) that exactly
    one result continues, and the `known` ones. With positions or names, these arguments persist,
    and each is paired with the one result of its tree and types. A mapping gives all pairs. Raises
    TraceError if results are ambiguous, as with the type of a bare array, or if some of the named
    arguments are continued and others are not.
    """
    if isinstance(state, str) and state == "auto":
        return _found(args, results, known)
    if isinstance(state, Mapping):
        return {
            _position(key, args): _checked(_position(key, args), to, args, results)
            for key, to in state.items()
        }
    several = state if isinstance(state, Sequence) and not isinstance(state, str) else (state,)
    return _named([_position(key, args) for key in several], args, results)


def _found(
    args: Sequence[Part], results: Sequence[Part], known: Mapping[int, int]
) -> dict[int, int | None]:
    pairs: dict[int, int | None] = {**known}
    free = {at: arg for at, arg in enumerate(args) if at not in known and arg.is_container}
    open_results = [r for r in range(len(results)) if r not in known.values()]
    for at, arg in free.items():
        fits = [r for r in open_results if results[r].fits(arg)]
        if not fits:
            continue
        rivals = [a.name for a in free.values() if a.fits(arg)]
        if len(fits) > 1 or len(rivals) > 1:
            raise TraceError(_ambiguous(rivals, [results[r].name for r in fits]))
        pairs[at] = fits[0]
    return pairs


def _named(
    chosen: Sequence[int], args: Sequence[Part], results: Sequence[Part]
) -> dict[int, int | None]:
    pairs: dict[int, int | None] = {}
    for at in chosen:
        if not args[at].types:  # an empty state of optax has nothing to continue
            pairs[at] = None
            continue
        rivals = [a for a in chosen if args[a].fits(args[at])]
        fits = [r for r, result in enumerate(results) if result.fits(args[at])]
        if fits and len(fits) != len(rivals):
            raise TraceError(
                _ambiguous([args[a].name for a in rivals], [results[r].name for r in fits])
            )
        if fits and not args[at].is_container:
            raise TraceError(
                f"{results[fits[0]].name} has the type of {args[at].name!r}, a bare array, and may be"
                f" its new value or something else: say state={{{args[at].name!r}: {fits[0]}}}, or"
                f" state={{{args[at].name!r}: None}} for what is only read"
            )
        pairs[at] = fits[rivals.index(at)] if fits else None
        if not fits:
            _refuse_part(args[at], results)
    continued = [at for at, to in pairs.items() if to is not None]
    lost = [at for at, to in pairs.items() if to is None and args[at].types]
    if continued and lost:
        name = args[lost[0]].name
        raise TraceError(
            f"the function does not return a new {name!r}: no result has its tree and types, though"
            f" one continues {args[continued[0]].name!r}; return it, or say state={{{name!r}:"
            " None} for what is only read"
        )
    return pairs


def _refuse_part(arg: Part, results: Sequence[Part]) -> None:
    """Raises TraceError if a result seems to be new values of a part of an argument, such as flax
    linen's ``mutable`` returns.
    """
    for result in results:
        if result.is_container and set(result.leaves.items()) < set(arg.leaves.items()):
            part = next(iter(result.leaves)).split(".")[0]
            raise TraceError(
                f"{result.name} may be new values of a part of {arg.name!r}, {part}, and a program"
                " continues whole arguments: give and return that part on its own, or say"
                f" state={{{arg.name!r}: None}} for what is only read"
            )


def _ambiguous(args: Sequence[str], results: Sequence[str]) -> str:
    a, r = " and ".join(map(repr, args)), " and ".join(results)
    return (
        f"the results do not say which of them is the new value of {a}: {r}"
        f" {'has' if len(results) == 1 else 'have'} that tree and these types; say it by"
        f" state={{{args[0]!r}: NUMBER OF THE RESULT, or None for what is only read}}"
    )


def _checked(at: int, to: int | None, args: Sequence[Part], results: Sequence[Part]) -> int | None:
    if to is None:
        return None
    if not isinstance(to, int) or not 0 <= to < len(results):
        raise TraceError(
            f"state pairs {args[at].name!r} with result {to!r}; there are results 0 to"
            f" {len(results) - 1}"
        )
    if not results[to].fits(args[at]):
        raise TraceError(
            f"{results[to].name} cannot be the new {args[at].name!r}:"
            f" {_difference(args[at], results[to])}"
        )
    return to


def _difference(arg: Part, result: Part) -> str:
    if arg.tree != result.tree:
        return f"its tree is {result.tree}, and that of the argument {arg.tree}"
    at = next(i for i, (a, b) in enumerate(zip(arg.types, result.types, strict=True)) if a != b)
    return (
        f"leaf {at} is {_spelled(*result.types[at])}, and that of the argument"
        f" {_spelled(*arg.types[at])}"
    )


def _spelled(shape: tuple[int, ...], dtype: str) -> str:
    return f"{dtype}{list(shape)}"


def _position(key: int | str, args: Sequence[Part]) -> int:
    names = [a.name for a in args]
    if isinstance(key, str) and key in names:
        return names.index(key)
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(args):
        return key
    raise TraceError(
        f"state names the argument {key!r}; the function has {', '.join(names) or 'none'}"
    )
