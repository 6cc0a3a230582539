"""Which names of Paddle a script uses, read off its syntax tree; nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import FluidError, FluidValueError
from ..paddle import names
from . import recorded


class Mention(NamedTuple):
    """A name of Paddle's at a line; of a call also how many arguments it has by position, and those
    that it names.
    """

    name: str
    line: int
    positional: int = 0
    keywords: tuple[str, ...] = ()


# name -> what of Paddle's it stands for; "paddle.fluid.Executor()" is one of these; None: no part
# of it
_Scope = dict[str, "str | None"]


def mentions(source: bytes, file: str) -> list[Mention]:
    """Every name of Paddle's in a script, in the order of lines. Raises FluidValueError for what is
    not Python 3.

    source: the bytes of the file: UTF-8, or what Latin-1 makes of them where they are not.
    """
    try:
        try:
            text = source.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = source.decode("latin-1")
        tree = ast.parse(text)
        reader = _Reader()
        reader.body(tree.body)
    except (SyntaxError, ValueError) as exc:  # ValueError: null bytes
        line, why = getattr(exc, "lineno", None), getattr(exc, "msg", None) or str(exc)
        raise FluidValueError(f"{file}:{line or 1} is not Python 3: {why}") from None
    except (RecursionError, MemoryError):  # the parser's stack, and the reader's
        raise FluidValueError(f"{file} is nested too deeply to be read") from None
    return sorted(set(reader.found), key=lambda m: (m.line, m.name))


def _listed(module: str) -> Iterator[str]:
    """The names that a star import of a module of Paddle's binds, there or not."""
    for version in (recorded.FLUID, recorded.LATER):
        yield from recorded.modules(version).get(module, ())
    try:
        found = names.find(module)
    except (FluidError, AttributeError):
        return
    yield from names.public_names(found)


class _Reader(ast.NodeVisitor):
    """Follows what names stand for, scope by scope. The body of a function is read after what is
    around it, as it is run.
    """

    def __init__(self) -> None:
        self.found: list[Mention] = []
        self.scopes: list[_Scope] = [{}]

    def body(self, statements: list[ast.stmt]) -> None:
        later: list[tuple[ast.AST, list[_Scope]]] = []
        self._later, before = later, getattr(self, "_later", None)
        for statement in statements:
            self.visit(statement)
        while later:
            node, scopes = later.pop(0)
            kept, self.scopes = self.scopes, scopes
            for inner in node.body if isinstance(node.body, list) else [node.body]:  # type: ignore[attr-defined]
                self.visit(inner)
            self.scopes = kept
        if before is not None:
            self._later = before

    # -- what names stand for

    def bind(self, name: str, path: str | None) -> None:
        if path is not None or self.meaning(name) is not None:
            self.scopes[-1][name] = path

    def meaning(self, name: str) -> str | None:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def path(self, node: ast.AST) -> str | None:
        """The dotted name of Paddle's that an expression stands for."""
        if isinstance(node, ast.Name):
            return self.meaning(node.id)
        if isinstance(node, ast.Attribute):
            base = self.path(node.value)
            return (
                None
                if base is None
                else _method(base, node.attr)
                if base.endswith(")")
                else f"{base}.{node.attr}"
            )
        if isinstance(node, ast.Call):
            made = self.path(node.func)
            found = recorded.find(made) if made is not None and not made.endswith(")") else None
            return f"{made}()" if found is not None and found.kind == "class" else None
        return None

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.split(".")[0] == "paddle":
                self.found.append(Mention(alias.name, node.lineno))
                self.bind(alias.asname or "paddle", alias.name if alias.asname else "paddle")
            else:
                self.bind(alias.asname or alias.name.split(".")[0], None)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        if node.level or module.split(".")[0] != "paddle":
            for alias in node.names:
                self.bind(alias.asname or alias.name, None)
            return
        for alias in node.names:
            if alias.name == "*":
                self.found.append(Mention(module, node.lineno))
                for name in _listed(module):
                    self.bind(name, f"{module}.{name}")
            else:
                self.found.append(Mention(f"{module}.{alias.name}", node.lineno))
                self.bind(alias.asname or alias.name, f"{module}.{alias.name}")

    # -- what binds names

    def _targets(self, targets: list[ast.expr], path: str | None) -> None:
        for target in targets:
            if isinstance(target, ast.Name):
                self.bind(target.id, path)
            else:
                for node in ast.walk(target):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        self.bind(node.id, None)
                self.visit(target)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        self._targets(node.targets, self.path(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._targets([node.target], self.path(node.value))

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self._targets([node.target], None)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._targets([item.optional_vars], None)
        for statement in node.body:
            self.visit(statement)

    visit_AsyncWith = visit_With

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        if not isinstance(node, ast.Lambda):
            self.bind(node.name, None)
            for decorator in node.decorator_list:
                self.visit(decorator)
        args = node.args
        for default in [*args.defaults, *(d for d in args.kw_defaults if d is not None)]:
            self.visit(default)
        every = [
            *args.posonlyargs,
            *args.args,
            *args.kwonlyargs,
            *filter(None, (args.vararg, args.kwarg)),
        ]
        self._later.append((node, [*self.scopes, dict.fromkeys((a.arg for a in every), None)]))

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(part)
        self.bind(node.name, None)
        outer = self.scopes
        self.scopes = [*outer, {}]
        for statement in node.body:
            self.visit(statement)
        self.scopes = outer

    # -- what uses them

    def _use(
        self, node: ast.Name | ast.Attribute, positional: int = 0, keywords: tuple[str, ...] = ()
    ) -> bool:
        path = self.path(node) if isinstance(node.ctx, ast.Load) else None
        if path is None or path.endswith(")"):
            return False
        self.found.append(Mention(path, node.end_lineno or node.lineno, positional, keywords))
        return True

    def visit_Name(self, node: ast.Name) -> None:
        self._use(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if not self._use(node) or isinstance(node.value, ast.Call):
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        keywords = tuple(k.arg for k in node.keywords if k.arg is not None)
        used = isinstance(node.func, ast.Name | ast.Attribute) and self._use(
            node.func, 0 if starred else len(node.args), keywords
        )
        if not used:
            self.visit(node.func)
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            self.visit(node.func.value)
        for part in [*node.args, *node.keywords]:
            self.visit(part)


def _method(made: str, name: str) -> str | None:
    """The path of a method of an object that ``made`` ("paddle.fluid.Executor()") stands for, if
    Paddle's has it.
    """
    cls = made.removesuffix("()")
    found = recorded.find(cls)
    return f"{cls}.{name}" if found is not None and name in found.methods else None
