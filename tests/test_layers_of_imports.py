"""Imports go down only: the table in docs/architecture.md, enforced on the syntax trees of the
whole package.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[1]
PACKAGE = "fluidjax"
FORBIDDEN_JAX = ("jax._src", "jax.core", "jax.interpreters", "jax.experimental")


@dataclass(frozen=True)
class Import:
    """One imported module (dotted); `lazy`: within a function; `typing`: for the type checker
    alone.
    """

    target: str
    line: int
    lazy: bool
    typing: bool


@cache
def levels() -> dict[int, tuple[str, ...]]:
    """The table: a Python literal, level -> module patterns below the package."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    found = re.search(r"```python\nLEVELS = (\{.*?\n\})\n```", text, re.DOTALL)
    assert found, "docs/architecture.md holds no block that begins with LEVELS = {"
    return {
        level: tuple(patterns.split()) for level, patterns in ast.literal_eval(found[1]).items()
    }


@cache
def modules() -> dict[str, Path]:
    """Dotted name -> file of every module of the package."""
    found = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


@cache
def level(module: str) -> int:
    """The level of a module, by the one pattern that fits it."""
    name = module.removeprefix(PACKAGE + ".")
    found = [n for n, patterns in levels().items() if any(fnmatchcase(name, p) for p in patterns)]
    assert len(found) == 1, (
        f"{module} stands {len(found)} times in the table of docs/architecture.md"
    )
    return found[0]


def for_the_type_checker(node: ast.AST) -> bool:
    """Whether it is `if TYPE_CHECKING:`."""
    test = getattr(node, "test", None)
    return isinstance(node, ast.If) and "TYPE_CHECKING" in (
        getattr(test, "id", None),
        getattr(test, "attr", None),
    )


def statements(
    node: ast.AST, lazy: bool = False, typing: bool = False
) -> Iterator[tuple[ast.stmt, bool, bool]]:
    """Every statement below `node`, whether a function encloses it, and whether the type checker
    alone reads it.
    """
    lazy = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    typing = typing or for_the_type_checker(node)
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, part, ()):
            if isinstance(child, ast.stmt):
                yield child, lazy, typing
            yield from statements(child, lazy, typing)


@cache
def every_import(module: str) -> tuple[Import, ...]:
    """What a module imports, with every ``from package import name`` resolved to the module that is
    meant.
    """
    return tuple(_imports(module))


def _imports(module: str) -> Iterator[Import]:
    for node, *where in statements(tree(module)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, *where)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(
                    full if full in modules() or base.startswith("jax") else base,
                    node.lineno,
                    *where,
                )


@cache
def imports(module: str) -> list[Import]:
    """What it imports when it runs."""
    return [i for i in every_import(module) if not i.typing]


def _base(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = (
        module.split(".") if modules()[module].name == "__init__.py" else module.split(".")[:-1]
    )
    return ".".join(
        [*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]
    )


@cache
def own(module: str) -> list[Import]:
    return [i for i in imports(module) if i.target.split(".")[0] == PACKAGE]


def breaches(within: str, wrong: Callable[[str, str], bool]) -> str:
    """A line for every import, in the modules whose names begin so, that is `wrong(module,
    target)`.
    """
    return "\n".join(
        f"{module}, line {i.line}: {i.target}"
        for module in modules()
        if module.startswith(within)
        for i in imports(module)
        if wrong(module, i.target)
    )


def is_of(target: str, *packages: str) -> bool:
    return (target + ".").startswith(tuple(package + "." for package in packages))


def test_imports_go_down():
    for module in modules():
        level(module)  # each stands in the table, once
    upward = breaches(
        PACKAGE, lambda module, target: is_of(target, PACKAGE) and level(target) > level(module)
    )
    assert not upward, f"imports from a level above the module's own:\n{upward}"


def test_no_cycles():
    """Modules of one level may import each other, but not in a circle (an import within a function
    may close one).
    """
    below = {
        m: {i.target for i in own(m) if not i.lazy and i.target in modules()} - {m}
        for m in modules()
    }
    while ready := [m for m, targets in below.items() if not targets]:
        for module in ready:
            del below[module]
        for targets in below.values():
            targets.difference_update(ready)
    assert not below, (
        f"modules that import each other in a circle, or depend on one: {', '.join(below)}"
    )


def test_every_pattern_fits_a_module():
    names = [m.removeprefix(PACKAGE + ".") for m in modules()]
    idle = [
        p
        for patterns in levels().values()
        for p in patterns
        if not any(fnmatchcase(n, p) for n in names)
    ]
    assert not idle, f"the table names what is not there: {', '.join(idle)}"


def test_only_public_jax():
    private = breaches(PACKAGE, lambda _, target: is_of(target, *FORBIDDEN_JAX))
    assert not private, f"imports of what JAX does not promise to keep:\n{private}"


def test_the_ir_is_pure_python():
    heavy = breaches(
        f"{PACKAGE}.ir", lambda _, target: is_of(target, "jax", "jaxlib", "numpy", "flax", "optax")
    )
    assert not heavy, f"the ir needs Python alone:\n{heavy}"


def test_layers_only_append_ops():
    computing = breaches(f"{PACKAGE}.layers", lambda _, target: is_of(target, "jax"))
    assert not computing, f"layers compute nothing:\n{computing}"


# -- no circle, wherever an import hides -----------------------------------------------------------

# Handles point up at what owns them, for the type checker alone: a variable and an op at their
# block, a block at its program.
OWNERS = {
    ("graph.variable", "graph.block"),
    ("graph.operator", "graph.block"),
    ("graph.block", "graph.program"),
}


def test_no_hidden_circles():
    below = {
        m: {i.target for i in every_import(m) if i.target in modules()} - {m} for m in modules()
    }
    for above, owner in OWNERS:
        below[f"{PACKAGE}.{above}"].remove(f"{PACKAGE}.{owner}")
    # which names it offers, by the name that it has then
    below["fluidjax.paddle"].discard("fluidjax")
    while ready := [m for m, targets in below.items() if not targets]:
        for module in ready:
            del below[module]
        for targets in below.values():
            targets.difference_update(ready)
    assert not below, (
        f"modules that import each other in a circle, or import one that does: {', '.join(below)}"
    )
