"""The objects around a step stay small, and each is changed by its own module alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.test_layers_of_imports import modules, tree

CORE = tuple(
    f"fluidjax.{room}"
    for room in (
        "executor runtime lower xla_cpu compiling devices feeds partition profiling state".split()
    )
)
MOST = 15


@cache
def core() -> tuple[str, ...]:
    return tuple(m for m in modules() if m.startswith(CORE))


def targets(node: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that a statement sets."""
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        found = [node.target]
    else:
        found = []
    for target in found:
        for each in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(each, ast.Attribute):
                yield each


def of_self(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id == "self"


@cache
def classes(module: str) -> tuple[ast.ClassDef, ...]:
    return tuple(n for n in ast.walk(tree(module)) if isinstance(n, ast.ClassDef))


def attributes(cls: ast.ClassDef) -> set[str]:
    """The fields of a dataclass, and what methods set on `self`."""
    fields = {
        n.target.id
        for n in cls.body
        if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
    }
    return fields | {t.attr for n in ast.walk(cls) for t in targets(n) if of_self(t)}


def doors(cls: ast.ClassDef) -> set[str]:
    """Properties that may be set: the class sees to what becomes of that."""
    return {
        d.value.id
        for n in cls.body
        if isinstance(n, ast.FunctionDef)
        for d in n.decorator_list
        if isinstance(d, ast.Attribute) and d.attr == "setter" and isinstance(d.value, ast.Name)
    }


@pytest.mark.parametrize("module", core())
def test_no_class_has_more_than_a_head_holds(module: str) -> None:
    found = {c.name: sorted(attributes(c)) for c in classes(module)}
    assert {name: each for name, each in found.items() if len(each) > MOST} == {}


def test_no_module_writes_to_another_s_object() -> None:
    """By names of attributes: whoever sets one that a class of the core has must be in its module.

    Also the other modules of the package; but for names that their own classes have.
    """
    owners: dict[str, set[str]] = {}
    for module in core():
        for cls in classes(module):
            for name in attributes(cls) - doors(cls):
                owners.setdefault(name, set()).add(module)
    set_anywhere = set().union(*(doors(c) for m in core() for c in classes(m)))
    wrong = []
    for module in core():
        for node in ast.walk(tree(module)):
            for target in targets(node):
                name = target.attr
                if name in owners and name not in set_anywhere and module not in owners[name]:
                    wrong.append(f"{module}:{target.lineno} sets {ast.unparse(target)}")
    known = {"_open.ranges"}  # of a thread
    assert [w for w in wrong if not w.endswith(tuple(known))] == []


@cache
def set_on_names() -> tuple[tuple[str, ast.Attribute, str], ...]:
    """Where the package sets an attribute of what is called a step or a plan: module, target, name."""
    return tuple(
        (module, target, target.value.id)
        for module in modules()
        for node in ast.walk(tree(module))
        for target in targets(node)
        if isinstance(target.value, ast.Name)
        and target.value.id in ("compiled", "plan", "step", "executables")
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Compiled", "StepPlan", "Executables"])
def test_nobody_writes_to_a_compiled_step(name: str) -> None:
    (home,) = (m for m in core() if any(c.name == name for c in classes(m)))
    (cls,) = (c for c in classes(home) if c.name == name)
    own = {"self", "other"}
    wrong = [
        f"{module}:{target.lineno} sets {ast.unparse(target)}"
        for module, target, called in set_on_names()
        if target.attr in attributes(cls) and not (module == home and called in own)
    ]
    assert wrong == []


def test_names_of_classes_mean_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for module in core():
        for cls in classes(module):
            homes.setdefault(cls.name, []).append(module)
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_ops_depend_on_no_context_variable_but_the_ring() -> None:
    """How an op is lowered stands in its Target."""
    found = {
        module
        for module in modules()
        if module.startswith("fluidjax.ops.")
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ContextVar")
    }
    assert found == {"fluidjax.ops.ring"}
