"""The printed form of a program, which parses back: ``parse(to_text(desc)) == desc``.

    program seed=0

    hints:
        *: role=Forward

    block 0:
        param fc_0.w_0: f32[13, 1]
        data x: f32[-1, 13]

        fc_0.tmp_0: f32[-1, 1] = mul(X=x, Y=fc_0.w_0, x_num_col_dims=1, y_num_col_dims=1)
        (Out=a: f32[2], XShape=b: f32[0, 2]) = reshape2(X=c, shape=(2,)) {role=Backward, var=(w,
        w@GRAD)}

* A temporary's type is shown where the first op writes it; everything else is declared at the top
  of its block.
* Names are bare or in backquotes, strings in double quotes; ``5L`` is an attribute of type LONG,
  ``block 1`` one of type BLOCK, ``0.9f`` the float32 nearest to 0.9. A line may end in ``# a
  comment``.
* Braces hold bookkeeping and hints to kernels. Hints that most ops of a type share are listed once,
  under ``hints`` (``*``: shared by all ops); an op without one of them has ``-use_mkldnn``. Call
  stacks, if any, are at the end, unless they are left out.
* An op's uid is the previous one's plus one (0 for the first); any other uid is written as
  ``{uid=17}``.

Order is kept among ops, slots, declarations, and attributes outside braces. NaN is read
as ``math.nan``, one object, so that values holding it compare equal. `OpDesc.loc` is not printed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from .lexis import (
    DTYPE_OF,
    KIND_OF,
    QUIET,
    attr_text,
    base_of,
    flags_text,
    name_text,
    type_text,
    value_text,
)
from .parse import parse as parse
from .walk import weights

Hints = Mapping[str, Mapping[str, Any]]  # op type ("*": all) -> attribute -> the usual value
_INDENT = "    "
_APART = frozenset({"op_callstack"})  # too long for a line; printed after the blocks
_OWN = frozenset({"op_role_var"}) | _APART  # not shared, unless all are empty
_ANSI = {
    "op": "1;34",
    "type": "36",
    "number": "33",
    "string": "32",
    "quiet": "2",
    "comment": "2",
    "word": "35",
}


def to_text(
    desc: ProgramDesc, color: bool = False, hints: Hints | None = None, callstacks: bool = True
) -> str:
    """The program as text. `hints`: the attributes to leave out of op lines; default: those that
    the ops share (see usual_hints).

    callstacks: False leaves out the ops' call stacks, which Paddle writes into saved programs, ten
    lines for each op.
    """
    shared = usual_hints([desc]) if hints is None else hints
    lines = [f"program seed={desc.seed}", ""]
    if shared:
        lines += [
            "hints:",
            *(f"{_INDENT}{_type_name(kind)}: {_attrs(row)}" for kind, row in shared.items()),
            "",
        ]
    uid = -1
    for idx, block in enumerate(desc.blocks):
        body, uid = _block_lines(block, shared, uid)
        lines += [_block_head(idx, block), *(_INDENT + line if line else "" for line in body), ""]
    stacks = [
        f"{_INDENT}block {idx} op {at}: {value_text(op.attrs[name])}"
        for idx, block in enumerate(desc.blocks)
        for at, op in enumerate(block.ops)
        for name in _APART.intersection(op.attrs)
    ]
    if stacks and callstacks:
        lines += ["callstacks:", *stacks, ""]
    elif stacks:
        lines += [
            (
                f"# {len(stacks)} ops carry an op_callstack, which is left out here;"
                " to_string(with_details=True) has them"
            ),
            "",
        ]
    text = "\n".join(lines)
    return paint(text) if color else text


def block_text(desc: ProgramDesc, idx: int) -> str:
    """One block of a program as it is in the program's text."""
    body, _ = _block_lines(desc.blocks[idx], usual_hints([desc]), -1)
    return "\n".join(
        [_block_head(idx, desc.blocks[idx]), *(_INDENT + line if line else "" for line in body)]
    )


def op_text(op: OpDesc, types: Mapping[str, VarDesc] | None = None) -> str:
    """One op's line without its uid and call stack. `types`: variables whose types to show."""
    return _op_line(op, dict(types or {}), {}, op.uid - 1)


def op_called(op: OpDesc) -> str:
    """An op for a sentence: "op 'mul' (train.py:12)"."""
    return f"op '{op.type}'" + (f" ({op.loc})" if op.loc else "")


def op_noted(op: OpDesc) -> str:
    """An op for the note of an error: its line, and the user's line."""
    return f"in op: {op_text(op)}" + (f"  # {op.loc}" if op.loc else "")


def var_text(var: VarDesc) -> str:
    """One variable's declaration."""
    base = base_of(var)
    return f"{base} {name_text(var.name)}: {type_text(var)}{flags_text(var, base)}"


def summary(desc: ProgramDesc) -> str:
    """A few lines: blocks, variables, parameters and their elements, ops by type."""
    kinds = Counter(op.type for block in desc.blocks for op in block.ops)
    params = weights(desc).values()
    elements = sum(_size(v.shape) for v in params)
    lines = [
        f"{_count(len(desc.blocks), 'block')}, {_count(kinds.total(), 'op')}, "
        f"{_count(sum(len(b.vars) for b in desc.blocks), 'variable')}, "
        f"{_count(len(params), 'parameter')} ({elements:,} elements), seed {desc.seed}"
    ]
    if kinds:
        lines.append(", ".join(f"{kind} {n}" if n > 1 else kind for kind, n in kinds.most_common()))
    return "\n".join(lines)


def usual_hints(descs: Iterable[ProgramDesc]) -> dict[str, dict[str, Any]]:
    """The hints that all ops share (under ``*``) and those that more than half of the ops of a type
    share.
    """
    kinds: Counter[str] = Counter()
    seen: Counter[tuple[str, str, str]] = Counter()  # (op type, attribute, spelled value) -> ops
    value_of: dict[tuple[str, str], Any] = {}  # (attribute, spelled value) -> the value
    roles: set[str] = set()
    for op in (op for desc in descs for block in desc.blocks for op in block.ops):
        kinds[op.type] += 1
        roles.add(value_text(op.attrs.get("op_role")))
        for name, value in op.attrs.items():
            if name in QUIET and (name not in _OWN or (name == "op_role_var" and value == ())):
                spelled = value_text(value)
                seen[op.type, name, spelled] += 1
                value_of.setdefault((name, spelled), value)
    total: Counter[tuple[str, str]] = Counter()
    for (_, name, spelled), count in seen.items():
        total[name, spelled] += count
    every = {n: value_of[n, s] for (n, s), count in sorted(total.items()) if count == kinds.total()}
    # if every op has a role, show only roles other than the usual one
    if "0" in roles and "None" not in roles:
        every["op_role"] = value_of["op_role", "0"]
    rows = {"*": every} if every else {}
    for (kind, name, spelled), count in sorted(seen.items()):
        usual = name == "op_role" or (name in every and value_text(every[name]) == spelled)
        if 2 * count > kinds[kind] and not usual:
            rows.setdefault(kind, {})[name] = value_of[name, spelled]
    return rows


def usual_for(hints: Hints, kind: str) -> dict[str, Any]:
    """The hints that apply to an op type unless an op's line overrides them."""
    return {**hints.get("*", {}), **(hints.get(kind, {}) if kind != "*" else {})}


def _type_name(kind: str) -> str:
    return kind if kind == "*" else name_text(kind)


def _attrs(attrs: Mapping[str, Any]) -> str:
    return ", ".join(attr_text(name, value) for name, value in attrs.items())


def _block_head(idx: int, block: BlockDesc) -> str:
    links = [f"parent {block.parent}"] if block.parent != -1 else []
    links += [f"forward {block.forward}"] if block.forward != -1 else []
    return f"block {idx} ({', '.join(links)}):" if links else f"block {idx}:"


def _block_lines(block: BlockDesc, hints: Hints, uid: int) -> tuple[list[str], int]:
    written = {name for op in block.ops for name in op.writes}
    inline = {n: v for n, v in block.vars.items() if n in written and base_of(v) == "var"}
    lines = [var_text(var) for name, var in block.vars.items() if name not in inline]
    if lines and block.ops:
        lines.append("")
    for op in block.ops:
        lines.append(_op_line(op, inline, hints, uid))
        uid = op.uid
    return lines, uid


def _op_line(op: OpDesc, types: dict[str, VarDesc], hints: Hints, uid: int) -> str:
    """`types` holds the variables whose types are still to be shown; those shown here are removed
    from it.
    """
    loud = {name: value for name, value in op.attrs.items() if name not in QUIET}
    slots = [f"{name_text(slot)}={_names(names, {})}" for slot, names in op.inputs.items()]
    call = f"{name_text(op.type)}({', '.join(slots + [f'{name_text(n)}={value_text(v)}' for n, v in loud.items()])})"
    quiet = {name: op.attrs[name] for name in sorted(QUIET & op.attrs.keys() - _APART)}
    usual = usual_for(hints, op.type)
    shown = [
        attr_text(n, v)
        for n, v in quiet.items()
        if n not in usual or value_text(usual[n]) != value_text(v)
    ]
    shown += [f"-{name_text(name)}" for name in usual if name not in quiet]
    shown += [f"uid={op.uid}"] if op.uid != uid + 1 else []
    return _outputs(op, types) + call + (f" {{{', '.join(shown)}}}" if shown else "")


def _outputs(op: OpDesc, types: dict[str, VarDesc]) -> str:
    if not op.outputs:
        return ""
    if list(op.outputs) == ["Out"] and len(op.output("Out")) == 1:
        return f"{_name(op.output('Out')[0], types)} = "
    return f"({', '.join(f'{name_text(slot)}={_names(names, types)}' for slot, names in op.outputs.items())}) = "


def _names(names: tuple[str, ...], types: dict[str, VarDesc]) -> str:
    return (
        _name(names[0], types)
        if len(names) == 1
        else f"[{', '.join(_name(n, types) for n in names)}]"
    )


def _name(name: str, types: dict[str, VarDesc]) -> str:
    var = types.pop(name, None)
    return (
        name_text(name)
        if var is None
        else f"{name_text(name)}: {type_text(var)}{flags_text(var, 'var')}"
    )


def _size(shape: tuple[int, ...] | None) -> int:
    return math.prod(max(d, 1) for d in shape or ())


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


_TYPES = "|".join(map(re.escape, [*DTYPE_OF, *KIND_OF, "?"]))
_STYLES = re.compile(
    rf"""(?P<string>"(?:[^"\\]|\\.)*") | (?P<comment>\#.*) | (?P<quiet>\ \{{.*\}}$)
    | (?P<word>^\ *(?:program|hints|block|callstacks|param|data|persist|var)\b(?=[ :]))
    | (?P<type>(?<=:\ )(?:(?:{_TYPES})(?![\w.@/$-])\ ?)+(?:\[[^\]]*\])?)
    | (?P<op>(?:[A-Za-z_@][\w.@/$-]*)(?=\()) | (?P<name>`(?:[^`\\]|\\.)*`|[A-Za-z_@][\w.@/$-]*)
    | (?P<number>-?\d[\w.+-]*)""",
    re.X | re.A | re.M,
)


def styled(text: str) -> Iterator[tuple[str, str]]:
    """(style, part) of printed text; styles: op type number string quiet comment word name, or
    empty.
    """
    at = 0
    for match in _STYLES.finditer(text):
        if match.start() > at:
            yield "", text[at : match.start()]
        yield match.lastgroup or "", match.group()
        at = match.end()
    if at < len(text):
        yield "", text[at:]


def paint(text: str) -> str:
    """`text` with terminal colours."""
    return "".join(
        f"\x1b[{_ANSI[s]}m{part}\x1b[0m" if s in _ANSI else part for s, part in styled(text)
    )
