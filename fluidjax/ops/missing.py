"""Values that may be missing: only a block writes them, and the block may not have run. The
environment records whether each was computed.

A compiled step has zeros in their place, which must not be used: an op or a fetch that reads a
value that was not computed raises an error (checking.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax.numpy as jnp

from .checking import Objection
from .concrete import known

MISSING = "@MISSING@"  # in an environment: name -> a boolean scalar, whether it was computed
_FLAG = "@MADE@"


def doubtful(names: Iterable[str], env: dict[str, Any]) -> list[str]:
    """The names among these without a value, or with one that may not have been computed."""
    return [n for n in names if n not in env or n in env.get(MISSING, {})]


def flags(names: Iterable[str], env: dict[str, Any]) -> dict[str, Any]:
    """A flag, under a separate name, for each of these names with a value: whether it was computed."""
    known_of = env.get(MISSING, {})
    return {_FLAG + n: known_of.get(n, True) for n in names if n in env}


def marked(env: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """`found` without its flags, which are stored in `env`."""
    marks = dict(env.get(MISSING, {}))
    for key in [k for k in found if k.startswith(_FLAG)]:
        name, made = key.removeprefix(_FLAG), found.pop(key)
        sure = known(made)
        marks.pop(name, None)
        if sure is None or not sure.all():
            marks[name] = jnp.asarray(made).reshape(())
    if marks or MISSING in env:
        env[MISSING] = marks
    return found


def assigned(env: dict[str, Any], names: Iterable[str]) -> None:
    """Mark these names as having values."""
    marks, written = env[MISSING], set(names)
    if not marks.keys().isdisjoint(written):
        env[MISSING] = {n: when for n, when in marks.items() if n not in written}


def missing(names: Iterable[str], env: dict[str, Any]) -> Iterator[Objection]:
    """The errors of an op that reads these names."""
    for name in names:
        if name in env[MISSING]:
            yield (
                ~env[MISSING][name],
                (
                    f"reads {name!r}, to which only a block that has not run gives a value; give it"
                    " one before"
                ),
                0,
            )


def fetched(names: Iterable[str], env: dict[str, Any]) -> Iterator[tuple[str, Objection]]:
    """(name, objection) for each of these fetched names that may be missing."""
    for name in names:
        if name in env.get(MISSING, {}):
            what = (
                f"is what gives {name!r} a value, which is fetched, but its block has not run; give"
                " it one before"
            )
            yield name, (~env[MISSING][name], what, 0)
