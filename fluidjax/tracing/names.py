"""Names: of leaves of arguments by their paths, and of values by the scopes that made them; also
the user's lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import jax

from ..base.loc import line_of
from ..errors import TraceError

_WRAPPER = re.compile(
    r"(?:transpose|jvp|vmap|rematted_computation|checkpoint|remat2?|jit|pjit|shard_map|pmap)\("
)
_NOT_A_NAME = re.compile(r"[^\w.@/$-]")
_PACKAGES = """jax jaxlib flax optax equinox haiku chex fluidjax diffrax lineax optimistix numpyro distrax jraph
    tensorflow_probability""".split()


class Names:
    """Generates names that no variable has yet."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Take exactly this name. Raises TraceError if it is taken already."""
        if name in self._counts:
            raise TraceError(f"two variables would be called {name!r}: give names= for one of them")
        self._counts[name] = 0
        return name

    def fresh(self, base: str) -> str:
        """`base`, or `base` with a number behind it."""
        name = base
        while name in self._counts:
            self._counts[base] += 1
            name = f"{base}.{self._counts[base]}"
        self._counts[name] = 0
        return name


def leaf_name(root: str, path: Iterable[Any]) -> str:
    """``params.Dense_0.kernel`` for a leaf: the keys, fields and numbers of its path, without
    flax's ``.value``.
    """
    words = [root]
    for part in path:
        word = str(getattr(part, "name", getattr(part, "key", getattr(part, "idx", part))))
        if word != "value":
            words.append(_NOT_A_NAME.sub("_", word.strip(".")))
    return ".".join(w for w in words if w)


def state_name(root: str, tree: Any, path: tuple[Any, ...]) -> str:
    """As :func:`leaf_name`, but a NamedTuple on the path, such as optax's states, adds its type:
    ``opt.adam.mu.Dense_0``.
    """
    words, node = [root], tree
    for part in path:
        word = str(getattr(part, "name", getattr(part, "key", getattr(part, "idx", part))))
        if isinstance(node, tuple) and hasattr(node, "_fields"):
            words.append(_short(type(node).__name__))
        numbered = isinstance(node, tuple) and not hasattr(node, "_fields")
        node = _child(node, part)
        into_state = isinstance(node, tuple) and (hasattr(node, "_fields") or numbered)
        if word != "value" and not (numbered and into_state and _is_chain(node)):
            words.append(_NOT_A_NAME.sub("_", word.strip(".")))
    return ".".join(w for w in words if w)


def _is_chain(node: Any) -> bool:
    return isinstance(node, tuple)


def _short(kind: str) -> str:
    """``adam`` for ScaleByAdamState."""
    found = kind.removeprefix("ScaleBy").removesuffix("State")
    return found[:1].lower() + found[1:]


def _child(node: Any, part: Any) -> Any:
    for attr in ("name", "key", "idx"):
        key = getattr(part, attr, None)
        if key is None:
            continue
        try:
            return getattr(node, key) if attr == "name" else node[key]
        except Exception:
            return None
    return None


def given_name(names: Callable[[str], str] | Mapping[str, str] | None, usual: str) -> str:
    """The caller's name for a leaf. Raises TraceError for anything but a name."""
    found = (
        names.get(usual, usual)
        if isinstance(names, Mapping)
        else names(usual)
        if names is not None
        else usual
    )
    if not isinstance(found, str) or not found:
        raise TraceError(f"names gives {found!r} for {usual!r}; a name is a non-empty string")
    return found


@cache
def scope_of(stack: str) -> str:
    """The scope ``Net/l1/ln1`` for a name stack such as ``transpose(jvp(Net))/l1/ln1``. The class
    of an equinox module is left out behind the module's name: ``eqx.nn.Linear``.
    """
    words = [
        word
        for word in _WRAPPER.sub("", stack).replace(")", "").split("/")
        if word and word not in _BARE
    ]
    of_class = [word.startswith("eqx.nn.") for word in words]
    return "/".join(
        word for at, word in enumerate(words) if not (at and of_class[at] and not of_class[at - 1])
    )


_BARE = frozenset(
    {
        "transpose",
        "jvp",
        "vmap",
        "rematted_computation",
        "checkpoint",
        "remat",
        "remat2",
        "closed_call",
        "jit",
        "pjit",
    }
)


@cache
def value_name(scope: str, kind: str) -> str:
    """The name of a primitive's result in a scope, without the scope's root if the scope has more
    parts.
    """
    words = scope.split("/")
    return ".".join(
        [*(_NOT_A_NAME.sub("_", w) for w in (words[1:] if len(words) > 1 else words) if w), kind]
    )


@cache
def _library_roots() -> tuple[str, ...]:
    """Folders of packages that hold no user code: where jax is installed, and this package."""
    site = os.path.dirname(os.path.dirname(os.path.abspath(jax.__file__)))
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return (*(os.path.join(site, package) + os.sep for package in _PACKAGES), own + os.sep)


@cache
def _is_library(file: str) -> bool:
    return file.startswith(_library_roots()) or file.startswith("<frozen")


def user_line(traceback: Any) -> str | None:
    """The innermost line outside of libraries, formatted as in errors; None if there is none."""
    try:
        for code, at in zip(*traceback.raw_frames(), strict=True):
            if not _is_library(code.co_filename):
                return line_of(code.co_filename, traceback.code_addr2line(code, at))
    except Exception:  # a missing line is not an error
        return None
    return None
