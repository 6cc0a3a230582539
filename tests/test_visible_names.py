"""Editors and type checkers see what Python sees: names are bound by statements that can be read
off the source.

For every module of the package: each public name is bound by a def, a class, an assignment or an
import, star imports being followed through literal ``__all__``; each function shows its parameters
and its docstring where it is defined.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from types import ModuleType

import pytest

from fluidjax.base.stand_in import absent
from tests.test_layers_of_imports import _base, modules
from tests.test_layers_of_imports import tree as parsed

pytestmark = pytest.mark.once

GENERATED = ("fluidjax.ir.framework_pb2",)  # protoc's, which has no other form
tree = cache(parsed)
MODULES = [m for m in modules() if m not in GENERATED and not m.endswith("__main__")]


@pytest.fixture(scope="module", autouse=True)
def _forgotten() -> Iterator[None]:
    """A million nodes would slow down every later collection of garbage."""
    yield
    tree.cache_clear()
    bound.cache_clear()


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module does, those within if, for, with and try too."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from statements(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from statements(handler.body)


def targets(node: ast.stmt) -> Iterator[str]:
    """The names that one statement binds, but for imports."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    held = [*getattr(node, "targets", []), *(getattr(node, "target", None),)]
    held += [item.optional_vars for item in getattr(node, "items", [])]
    for target in filter(None, held):
        yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


@cache
def listed(module: str) -> list[str] | None:
    """``__all__`` as a type checker reads it: a literal list, and ``__all__ += other.__all__`` for
    an imported module.
    """
    found: list[str] | None = None
    for node in statements(tree(module).body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in targets(node):
            found = list(ast.literal_eval(node.value))
        elif isinstance(node, ast.AugAssign) and "__all__" in targets(node):
            assert isinstance(node.value, ast.Attribute) and isinstance(
                node.value.value, ast.Name
            ), module
            found = [*found, *listed(f"{module_of(module, node.value.value.id)}")]
    return found


@cache
def module_of(module: str, name: str) -> str:
    """The module that `name` is bound to by ``from . import name``."""
    for node in statements(tree(module).body):
        if isinstance(node, ast.ImportFrom) and any(
            (a.asname or a.name) == name for a in node.names
        ):
            return f"{_base(module, node)}.{name}"
    raise AssertionError(f"{module}: {name} is not an imported module")


@cache
def bound(module: str) -> dict[str, ast.stmt]:
    """Every name of a module that its source binds, and the statement that does."""
    names: dict[str, ast.stmt] = {}
    for node in statements(tree(module).body):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names |= dict.fromkeys(listed(_base(module, node)), node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {a.asname or a.name.split(".")[0]: node for a in node.names}
        else:
            names |= dict.fromkeys(targets(node), node)
    return names


def public(module: ModuleType) -> set[str]:
    """What a module offers, its own modules not counted: those are files."""
    own = {
        n for n, v in vars(module).items() if getattr(v, "__name__", "") == f"{module.__name__}.{n}"
    }
    return {n for n in vars(module) if not n.startswith("_")} - {
        n for n in own if isinstance(vars(module)[n], ModuleType)
    }


def test_names_are_bound_in_sight():
    hidden = []
    for module in MODULES:
        loaded = importlib.import_module(module)
        if absent(loaded):
            continue  # names that stand in for what is not there
        known = bound(module).keys()
        hidden += [f"{module}.{name}" for name in sorted(public(loaded) - known)]
        if hasattr(loaded, "__all__"):
            assert sorted(loaded.__all__) == sorted(listed(module)), module
            assert all(
                n in known or isinstance(getattr(loaded, n), ModuleType) for n in loaded.__all__
            ), module
    assert not hidden


def test_no_code_out_of_text():
    """No module executes text, and none binds names by ``globals()`` or ``setattr`` as it is
    imported.
    """
    made = [
        f"{module}, line {node.lineno}: {ast.unparse(call)[:60]}"
        for module in MODULES
        for node in statements(tree(module).body)
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if call.func.id in ("exec", "eval")
        or (call.func.id in ("globals", "setattr") and not _within_function(node))
    ]
    assert not made


def _within_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def arguments(node: ast.FunctionDef) -> list[str]:
    """The parameters written at a def."""
    a = node.args
    starred = [p.arg for p in (a.vararg, a.kwarg) if p]
    return sorted([*(p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)), *starred])


def test_functions_show_their_parameters():
    """The parameters and the docstring that Python reports are those written at the def, whatever
    decorates it.
    """
    other = []
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name, node in bound(module).items():
            value = getattr(loaded, name, None)
            if not isinstance(node, ast.FunctionDef) or not inspect.isfunction(value):
                continue
            same = sorted(inspect.signature(value).parameters) == arguments(node)
            if not same or inspect.getdoc(value) != ast.get_docstring(node):
                other.append(f"{module}.{name}")
    assert not other


def test_methods_stand_in_their_class():
    """No class gets a method from elsewhere; what dataclasses and enums make of themselves is
    theirs.
    """
    planted = []
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name, node in bound(module).items():
            cls = getattr(loaded, name, None)
            if (
                not isinstance(node, ast.ClassDef)
                or not inspect.isclass(cls)
                or issubclass(cls, enum.Enum)
            ):
                continue
            written = {t for statement in statements(node.body) for t in targets(statement)}
            made = {
                n for n, v in vars(cls).items() if inspect.isfunction(v) and v.__module__ == module
            }
            if not is_dataclass(cls) and not issubclass(cls, tuple):
                planted += [f"{module}.{name}.{n}" for n in made - written]
            planted += [
                f"{module}.{name}.{n}"
                for n in vars(cls)
                if not n.startswith("_") and n not in written | slots(cls)
            ]
    assert not planted


def slots(cls: type) -> set[str]:
    """The names in __slots__."""
    return set(vars(cls).get("__slots__", ()))


def test_editors_see_the_operators():
    import fluidjax

    symbols = (
        "add radd sub rsub mul rmul truediv rtruediv pow rpow floordiv mod neg lt le gt ge eq ne"
        " bool getitem"
    )
    seen = {n for m in ("operators", "indexing") for c in tree(f"fluidjax.graph.{m}").body if isinstance(c, ast.ClassDef)
            for s in c.body for n in targets(s)}  # fmt: skip
    for name in (f"__{s}__" for s in symbols.split()):
        assert name in seen and getattr(fluidjax.Variable, name) is not getattr(object, name, None)
