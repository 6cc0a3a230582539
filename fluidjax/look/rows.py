"""One op, one variable: a line each, whose names the script finds again.

    <li data-n="3" data-l="0:12"><b class="n">3</b>
        <span class="o"><a class="d">h</a>: <i>f32[-1, 8]</i></span> = <b
        class="op">mul</b>(...)</li>

``a`` is a variable's name (``d`` for its declaration), ``.o`` holds written names and ``.i`` read
ones. A data attribute holds the number of a text in a table of the page's data, so that equal texts
are stored once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..base.roles import OP_NAMESCOPE
from ..ir.desc import EMPTY, OpDesc, ProgramDesc, VarDesc
from ..ir.lexis import (
    QUIET,
    attr_text,
    base_of,
    flags_text,
    name_text,
    printable,
    role_text,
    type_text,
    value_text,
)
from ..ir.text import usual_for, usual_hints
from ..ops.catalog import REGISTRY
from .frame import count, esc, fold

LONG = 160  # characters of an attribute's value that are unfolded
_SHOWN_APART = frozenset({"op_callstack", OP_NAMESCOPE, "op_role"})


@dataclass
class Texts:
    """Texts by number, each once."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


class Rows:
    """The lines of a program's ops and variables, and the data for the script."""

    def __init__(self, desc: ProgramDesc) -> None:
        self.desc = desc
        self.hints = usual_hints([desc])
        self.files, self.scopes, self.notes = Texts(), Texts(), Texts()
        self.formulas: dict[str, str | None] = {}

    def data(self) -> dict[str, Any]:
        """The data for the script."""
        parents = [block.parent for block in self.desc.blocks]
        tables = {name: list(map(printable, texts.numbers)) for name, texts in
                  (("files", self.files), ("scopes", self.scopes), ("notes", self.notes))}  # fmt: skip
        return {"parents": parents, "formulas": self.formulas, **tables}

    def op(
        self,
        block: int,
        at: int,
        op: OpDesc,
        types: dict[str, VarDesc],
        inner: str = "",
        uid: int = -1,
    ) -> str:
        """One op. types: variables whose declarations are still to be shown; those shown here are
        removed.

        inner: HTML of the blocks that it runs. uid: of the op before; this op's uid is shown only
        if it is not the next one.
        """
        kind = name_text(op.type)
        if kind not in self.formulas:
            self.formulas[kind] = formula(op.type)
        known = "" if self.formulas[kind] is not None else " bad"
        alone = list(op.outputs) == ["Out"]
        outputs = ", ".join(
            self._slot(block, "" if alone else slot, names, types)
            for slot, names in op.outputs.items()
        )
        inputs = [self._slot(block, slot, names, {}) for slot, names in op.inputs.items()]
        loud = [
            f"<span><s>{esc(name_text(n))}=</s>{_value(v)}</span>"
            for n, v in op.attrs.items()
            if n not in QUIET
        ]
        written = f'<span class="o">{outputs}</span> = ' if op.outputs else ""
        read = f'<span class="i">{", ".join(inputs)}</span>' if inputs else ""
        call = ", ".join([*([read] if inputs else []), *loud])
        line = f'<b class="n">{at}</b> {written}<b class="op{known}">{esc(kind)}</b>({call})'
        return f"<li{self._known(at, op, uid)}>{line}{inner}</li>"

    def variable(self, var: VarDesc) -> str:
        """One declaration."""
        base = base_of(var)
        flags = flags_text(var, base)
        return (
            f'<li class="v">{base} <a class="d">{esc(name_text(var.name))}</a>:'
            f" {_type(var)}{esc(flags)}</li>"
        )

    def _slot(
        self, block: int, slot: str, names: tuple[str, ...], types: dict[str, VarDesc]
    ) -> str:
        shown = ", ".join(self._name(block, name, types) for name in names)
        listed = shown if len(names) == 1 else f"[{shown}]"
        return f"<s>{esc(name_text(slot))}=</s>{listed}" if slot else listed

    def _name(self, block: int, name: str, types: dict[str, VarDesc]) -> str:
        if name == EMPTY:
            return f"<s>{EMPTY}</s>"
        var = types.pop(name, None)
        if var is not None:
            return (
                f'<a class="d">{esc(name_text(name))}</a>:'
                f" {_type(var)}{esc(flags_text(var, 'var'))}"
            )
        dangling = "" if self.desc.find_var(name, block) is not None else ' class="bad"'
        return f"<a{dangling}>{esc(name_text(name))}</a>"

    def _known(self, at: int, op: OpDesc, uid: int) -> str:
        """The data attributes of an op."""
        given: dict[str, object] = {"n": at}
        if op.loc:
            file, _, line = op.loc.rpartition(":")
            given["l"] = (
                f"{self.files.number(file)}:{line}"
                if file and line.isdigit()
                else f"{self.files.number(op.loc)}:"
            )
        scope = op.attrs.get(OP_NAMESCOPE)
        if isinstance(scope, str) and scope.strip("/"):
            given["s"] = self.scopes.number(scope)
        notes = quiet_text(op, self.hints)
        if op.uid != uid + 1:
            notes = ", ".join(filter(None, [notes, f"uid={op.uid}"]))
        if notes:
            given["q"] = self.notes.number(notes)
        return "".join(f' data-{name}="{value}"' for name, value in given.items())


def quiet_text(op: OpDesc, hints: Mapping[str, Mapping[str, Any]]) -> str:
    """The role if it tells more than the section, and the bookkeeping that is unusual for ops of
    the type.
    """
    usual = usual_for(hints, op.type)
    role = role_text(op.attrs.get("op_role", 0)) or ""
    shown = [f"role={role}"] if "|" in role else []
    for name in sorted(QUIET & op.attrs.keys() - _SHOWN_APART):
        value = op.attrs[name]
        if name not in usual or value_text(usual[name]) != value_text(value):
            shown.append(attr_text(name, value))
    return ", ".join(shown)


def formula(kind: str) -> str | None:
    """The formula of ops of a type, in one line; None for an unknown type."""
    definition = REGISTRY.get(kind)
    return None if definition is None else definition.formula


def _type(var: VarDesc) -> str:
    return f"<i>{esc(type_text(var))}</i>"


def _value(value: Any) -> str:
    text = value_text(value)
    if len(text) <= LONG:
        return esc(text)
    return fold(
        f"{esc(text[:60])} ... ({count(len(text), 'character')})",
        esc(text),
        attributes=' class="long"',
    )
