"""The public surface: every public name with its signature is written down in data/public_api.txt.

A name that goes, or an argument that is renamed, shows there. After a change that is meant:

    make api        (or: python -m tests.test_public_surface)
"""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from website.signatures import written

GOLDEN = Path(__file__).parent / "data" / "public_api.txt"
# the modules that users import; below "fluidjax.paddle" every one
PUBLIC = (
    "fluidjax backward clip compiler core data_feeder dataset.idx dist errors executor functional"
    " initializer io layers metrics nets optimizer param_attr place profiler program reader"
    " regularizer scope transpiler unique_name ir.desc ir.edit ir.proto ir.show ir.text ir.verify"
    " ir.walk ops.registry"
)


def public_modules() -> list[str]:
    """The modules in PUBLIC that exist."""
    found = [
        name
        for name in ("fluidjax", *(f"fluidjax.{n}" for n in PUBLIC.split()[1:]))
        if exists(name)
    ]
    if exists("fluidjax.paddle"):
        package = importlib.import_module("fluidjax.paddle")
        found += [
            "fluidjax.paddle",
            *(info.name for info in pkgutil.walk_packages(package.__path__, "fluidjax.paddle.")),
        ]
    return found


def exists(module: str) -> bool:
    """Whether there is such a module; a folder without code is none."""
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def names(module: ModuleType) -> list[str]:
    """``__all__``, or what the module itself defines; for a package, what it re-exports (but for
    its own modules).
    """
    if hasattr(module, "__all__"):
        return sorted(set(module.__all__))
    public = [n for n in dir(module) if not n.startswith("_") and n != "annotations"]
    if hasattr(module, "__path__"):
        return sorted(
            n
            for n in public
            if getattr(getattr(module, n), "__name__", "") != f"{module.__name__}.{n}"
        )
    return sorted(
        n for n in public if getattr(getattr(module, n), "__module__", None) == module.__name__
    )


def arguments(thing: Any) -> str:
    """``(x, axis=-1, *, name=None)``, without annotations."""
    try:
        return f"({', '.join(written(inspect.signature(thing), annotated=False))})"
    except (TypeError, ValueError):
        return "(...)"


def members(cls: type) -> Iterator[str]:
    """The public methods and properties that a class, or one of ours that it derives from, defines."""
    ours = [c for c in cls.__mro__ if c.__module__.startswith("fluidjax")]
    # what every layer has is listed once
    ours = [c for c in ours if c is cls or c.__name__ != "Layer"]
    for name in sorted({n for c in ours for n in vars(c) if not n.startswith("_")}):
        value = inspect.getattr_static(cls, name)
        if isinstance(value, staticmethod | classmethod):
            yield f"{name}{arguments(getattr(cls, name))}"
        elif inspect.isfunction(value):
            yield f"{name}{arguments(value)}"
        elif isinstance(value, property):
            yield name
        elif isinstance(value, enum.Enum):
            yield f"{name} = {value.value!r}"


def described(module: str, seen: dict[int, str]) -> Iterator[str]:
    """The lines of one module; what `seen` (id -> full name) holds is not described again."""
    loaded = importlib.import_module(module)
    for name in names(loaded):
        value = getattr(loaded, name)
        named = inspect.isclass(value) or inspect.isfunction(value)
        if named and id(value) in seen:
            yield f"{name} = {seen[id(value)]}"
            continue
        if named:
            seen[id(value)] = f"{module}.{name}"
        if isinstance(value, ModuleType):
            yield f"{name} -> module {value.__name__}"
        elif inspect.isclass(value) and value.__module__.startswith("fluidjax"):
            own_init = any(
                "__init__" in vars(c) for c in value.__mro__ if c.__module__.startswith("fluidjax")
            )
            plain = issubclass(value, enum.Enum) or not own_init
            bases = ", ".join(b.__name__ for b in value.__bases__)
            yield f"class {name}{'' if plain else arguments(value)}" + (
                "" if bases == "object" else f" < {bases}"
            )
            yield from (f"    {line}" for line in members(value))
        elif not inspect.isroutine(value):
            yield f"{name}: {'type' if inspect.isclass(value) else type(value).__name__}"
        else:
            yield f"{name}{arguments(value)}"


def surface() -> str:
    """The whole text: a section a module."""
    seen: dict[int, str] = {}
    sections = ([f"[{module}]", *described(module, seen)] for module in public_modules())
    return "\n\n".join("\n".join(lines) for lines in sections if len(lines) > 1) + "\n"


def test_public_surface():
    assert surface().splitlines() == GOLDEN.read_text().splitlines(), (
        "the public surface changed; if that is meant: make api"
    )


def test_every_public_thing_says_what_it_is():
    bare = []
    for module in public_modules():
        loaded = importlib.import_module(module)
        if not loaded.__doc__:
            bare.append(module)
        for name in names(loaded):
            value = getattr(loaded, name)
            if (inspect.isfunction(value) or inspect.isclass(value)) and not value.__doc__:
                bare.append(f"{module}.{name}")
    assert not bare, f"without docstring: {', '.join(bare)}"


if __name__ == "__main__":
    GOLDEN.write_text(surface())
    print(f"{GOLDEN}: {len(surface().splitlines())} lines")
    from tests import test_compatibility

    test_compatibility.write()
