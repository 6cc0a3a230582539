"""Values that a block alone makes which may not have run: of each the environment knows whether it
was made.

A compiled step has zeros in their place, which nobody may take for a value: who reads or fetches
one objects where it was not made (checking.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jax.numpy as jnp

from .checking import Objection
from .concrete import known

UNMADE = "@UNMADE@"  # in an environment: name -> a boolean scalar, whether it was made
_FLAG = "@MADE@"


def doubtful(names: Iterable[str], env: dict[str, Any]) -> list[str]:
    """Those of these names that have no value, or one that may not have been made."""
    return [n for n in names if n not in env or n in env.get(UNMADE, {})]


def flags(names: Iterable[str], env: dict[str, Any]) -> dict[str, Any]:
    """For each of these names that has a value, under a name of its own, whether the value was
    made.
    """
    known_of = env.get(UNMADE, {})
    return {_FLAG + n: known_of.get(n, True) for n in names if n in env}


def marked(env: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """`found` without its flags, which become marks of `env`."""
    marks = dict(env.get(UNMADE, {}))
    for key in [k for k in found if k.startswith(_FLAG)]:
        name, made = key.removeprefix(_FLAG), found.pop(key)
        sure = known(made)
        marks.pop(name, None)
        if sure is None or not sure.all():
            marks[name] = jnp.asarray(made).reshape(())
    if marks or UNMADE in env:
        env[UNMADE] = marks
    return found


def made_anew(env: dict[str, Any], names: Iterable[str]) -> None:
    """These names were given values."""
    marks, made = env[UNMADE], set(names)
    if not marks.keys().isdisjoint(made):
        env[UNMADE] = {n: when for n, when in marks.items() if n not in made}


def unmade(names: Iterable[str], env: dict[str, Any]) -> Iterator[Objection]:
    """The objections of an op that reads these."""
    for name in names:
        if name in env[UNMADE]:
            yield (
                ~env[UNMADE][name],
                (
                    f"reads {name!r}, to which only a block that has not run gives a value; give it"
                    " one before"
                ),
                0,
            )


def fetched(names: Iterable[str], env: dict[str, Any]) -> Iterator[tuple[str, Objection]]:
    """(name, objection) of those of these, which are fetched."""
    for name in names:
        if name in env.get(UNMADE, {}):
            what = (
                f"is what gives {name!r} a value, which is fetched, but its block has not run; give"
                " it one before"
            )
            yield name, (~env[UNMADE][name], what, 0)
