"""A short outline of a long program: its parts by role and name scope, one line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .desc import OpDesc, ProgramDesc
from .lexis import role_text, type_text

_KINDS = 6  # op types that a line names


@dataclass(frozen=True)
class _Part:
    """Ops of one role and scope; `prefix` is the scope, cut at the depth of the outline."""

    role: str
    prefix: str
    ops: tuple[OpDesc, ...]


def outline(desc: ProgramDesc, lines: int = 45) -> str:
    """The program in at most about `lines` lines, each with a role, a scope and its ops.

    Scopes are opened as far as the lines allow; ops without a scope get one line for each role. Ops
    that update parameters get one line for each parameter, and parameters that the same kinds of
    ops update share a line.
    """
    ops = desc.blocks[0].ops
    updated = _updated(desc)
    deepest = max((len(_scope(op)) for op in ops), default=0)
    parts = _parts(ops, 0)
    for depth in range(1, deepest + 1):
        finer = _parts(ops, depth)
        if len(finer) > lines:
            break
        parts = finer
    state = [v for v in desc.blocks[0].vars.values() if v.persistable]
    fed = [v for v in desc.blocks[0].vars.values() if v.is_data and not v.persistable]
    inputs = ", ".join(f"{v.name}: {type_text(v)}" for v in fed[:4]) + (
        ", ..." if len(fed) > 4 else ""
    )
    found = [f"{len(ops):,} ops, {len(state):,} variables of state, fed {inputs or 'nothing'}"]
    width = max((len(p.prefix) for p in parts), default=0)
    role = ""
    for part in parts:
        if part.role != role:
            role = part.role
            found.append(role)
        if part.prefix or role != "Optimize":
            found.append(_line(part.prefix, width, part.ops))
        else:
            found += _updates(part.ops, updated, width)
    return "\n".join(found)


def _line(label: str, width: int, ops: Sequence[OpDesc], times: str = "") -> str:
    return f"  {label:{width}}  {len(ops):>5}{times}  {_counted(ops)}"


def _updated(desc: ProgramDesc) -> dict[int, str]:
    """The uids of ops that update a single parameter, with its name."""
    block = desc.blocks[0]
    ends: dict[str, frozenset[str]] = {}  # value -> the parameters that it ends in
    found: dict[int, str] = {}
    for op in reversed(block.ops):
        reached = frozenset().union(*(ends.get(n, frozenset()) for n in op.writes))
        reached |= {n for n in op.writes if n in block.vars and block.vars[n].is_parameter}
        if len(reached) == 1:
            (found[op.uid],) = reached
        for name in op.writes:
            ends.pop(name, None)
        for name in op.reads:
            ends[name] = ends.get(name, frozenset()) | reached
    return found


def _updates(ops: Sequence[OpDesc], updated: Mapping[int, str], width: int) -> list[str]:
    """A line for the ops that several parameters share, and one for each group of parameters that
    the same kinds of ops update.
    """
    shared = [op for op in ops if op.uid not in updated]
    of_each: dict[str, list[OpDesc]] = {}
    for op in ops:
        if op.uid in updated:
            of_each.setdefault(updated[op.uid], []).append(op)
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, each in of_each.items():
        groups.setdefault(tuple(sorted(op.type for op in each)), []).append(name)
    lines = [_line("", width, shared)] if shared else []
    for names in groups.values():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        times = f" x {len(names)}" if more else ""
        lines.append(_line(f"{names[0]}{more}", width, of_each[names[0]], times))
    return lines


def _parts(ops: Sequence[OpDesc], depth: int) -> list[_Part]:
    """The ops by role and by the first words of their scopes, in order of their first ops."""
    found: dict[tuple[str, str], list[OpDesc]] = {}
    for op in ops:
        role = role_text(op.attrs.get("op_role", 0)) or "?"
        found.setdefault((role, "/".join(_scope(op)[:depth])), []).append(op)
    roles = list(dict.fromkeys(role for role, _ in found))
    return [
        _Part(role, prefix, tuple(each))
        for r in roles
        for (role, prefix), each in found.items()
        if role == r
    ]


def _scope(op: OpDesc) -> tuple[str, ...]:
    named = op.attrs.get("op_namescope")
    return tuple(word for word in named.split("/") if word) if isinstance(named, str) else ()


def _counted(ops: Sequence[OpDesc]) -> str:
    kinds = Counter(op.type.removeprefix("jax.") for op in ops).most_common()
    text = ", ".join(kind if n == 1 else f"{kind} {n}" for kind, n in kinds[:_KINDS])
    return text + (f", {len(kinds) - _KINDS} more types" if len(kinds) > _KINDS else "")
