"""Every op type of the registry: its formula, slots and attributes, by family."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from html import escape

from fluidjax.ops.attributes import REQUIRED, Attr
from fluidjax.ops.catalog import REGISTRY
from fluidjax.ops.definition import OpDef, Slot

from . import docstrings
from .reference import Page, first_line, plain, up


def pages() -> list[Page]:
    """A page for the families that have many types, one for the others together."""
    families: dict[str, list[OpDef]] = {}
    for op in REGISTRY.values():
        if op.forward is None:
            fn = inspect.unwrap(op.fn) if op.fn else op.control
            module = getattr(fn, "__module__", "")
            families.setdefault(
                module if module.startswith("fluidjax.ops.") else "fluidjax.ops.control", []
            ).append(op)
    halves: dict[str, list[str]] = {}
    for module in sorted(families):
        initial = "control ops" if ".control" in module else ""
        halves.setdefault(initial or letter(module), []).append(module)
    return [
        page(title, {m: families[m] for m in modules}) for title, modules in sorted(halves.items())
    ]


def letter(module: str) -> str:
    first = module.removeprefix("fluidjax.ops.").lstrip("_")[0]
    return next(
        span for span in ("a-c", "d-e", "f-l", "m-q", "r-s", "t-z") if span[0] <= first <= span[2]
    )


def page(title: str, families: dict[str, list[OpDef]]) -> Page:
    found = Page(
        f"ops/{title.replace(' ', '-')}.md", title if len(title) > 3 else f"Families {title}"
    )

    def link(name: str) -> str | None:
        return (
            up(found.path) + name.removeprefix("docs/").replace(".md", ".html")
            if name.startswith("docs/")
            else None
        )

    lines = [f"# Op types: {found.title.lower()}\n"]
    for module, ops in families.items():
        name = (
            module.removeprefix("fluidjax.ops.")
            .replace("control_interface", "control")
            .replace("_", " ")
        )
        lines.append(f"## {plain(name)}\n")
        lines.append(
            f'<p class="subject">{docstrings.inline(first_line(importlib.import_module(module)), link)}</p>\n'
        )
        for op in sorted(ops, key=lambda op: op.type):
            lines += described(op, link)
    found.markdown = "\n".join(lines)
    return found


def described(op: OpDef, link: docstrings.Link) -> Iterator[str]:
    yield f"### `{op.type}` {{#op-{op.type}}}\n"
    doc = inspect.cleandoc(op.doc or "")
    names = [slot.name for slot in (*op.inputs, *op.outputs)] + list(op.attrs)
    rows = [("takes", ", ".join(map(slot, op.inputs))), ("gives", ", ".join(map(slot, op.outputs)))]
    rows.append(("attributes", ", ".join(attribute(a) for a in op.attrs.values())))
    rows.append(("gradient", gradient(op)))
    table = "".join(f"<tr><th>{head}</th><td>{says}</td></tr>" for head, says in rows if says)
    yield (
        f'<div class="doc">{docstrings.html(doc, names, link)}<table'
        f' class="op">{table}</table></div>\n'
    )


def slot(found: Slot) -> str:
    said = {
        "several": found.many,
        "optional": found.optional,
        "for the gradient": found.intermediate,
    }
    words = [word for word, holds in said.items() if holds]
    return f"<code>{escape(found.name)}</code>" + (f" ({', '.join(words)})" if words else "")


def attribute(found: Attr) -> str:
    value = "" if found.default is REQUIRED else f" = {found.default!r}"
    return f"<code>{escape(found.name + value)}</code> {found.type}"


def gradient(op: OpDef) -> str:
    if op.grad is not None:
        return f"<code>{escape(op.grad.type)}</code>, of " + ", ".join(
            f"<code>{escape(s)}</code>" for s in op.grad.gives.values()
        )
    if op.reuse:
        return " and ".join(f"<code>{escape(r.type)}</code>" for r in op.reuse)
    return "ops that its family writes" if op.write_grad else "none"
