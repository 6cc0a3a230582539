"""Groups the ops of a block for readers: by role, by name scope or module, and by the structure of
the graph; gradient ops are grouped like their forward ops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ..base.roles import OP_NAMESCOPE
from ..ir import walk
from ..ir.desc import OpDesc, ProgramDesc
from ..ir.walk import weights
from .facts import Facts
from .groups import FEWEST, MOST, Group, fitted, together
from .motifs import LONG, Namer, numbered, placed
from .roles import SECTIONS, section_of
from .structure import OUTSIDE, Edge, Structure

GRAD = "@GRAD"
DEEPEST = 8  # blocks within blocks
TINY = 3  # ops of a block that is not drawn as a graph of its own
MAIN = 0.6  # share of the ops: a larger scope is the net itself, and is opened
_ENDS = {"feed": "inputs", "fetch": "results"}


def folded(desc: ProgramDesc) -> tuple[Group, ...]:
    """The groups of block 0 in the first view, each with its inner groups; every op is in exactly
    one leaf. The body of an op with blocks has the groups of these blocks.
    """
    if not desc.blocks:
        return ()
    known = weights(desc)
    left = set(range(1, len(desc.blocks)))  # blocks that no op has shown yet

    def of_block(at: int, depth: int) -> tuple[Group, ...]:
        return tuple(bodied(g, at, depth) for g in _folded(Facts(desc, known, at), edges(desc, at)))

    def bodied(group: Group, at: int, depth: int) -> Group:
        if group.parts:
            return replace(group, block=at, parts=tuple(bodied(p, at, depth) for p in group.parts))
        refs = [ref for ref in desc.blocks[at].ops[group.ops[0]].blocks if ref in left]
        refs = refs if depth < DEEPEST and sum(len(desc.blocks[r].ops) for r in refs) > TINY else []
        left.difference_update(refs)
        body = tuple(g for ref in refs for g in of_block(ref, depth + 1))
        return replace(group, block=at, body=body)

    return of_block(0, 0)


def edges(desc: ProgramDesc, at: int = 0) -> list[Edge]:
    """(from, to, name): op `to` reads a value that op `from` writes; reads of blocks within an op
    count as the op's.
    """
    writer: dict[walk.Version, int] = {}
    found = []
    for i, names in enumerate(walk.versions(desc.blocks[at], desc)):
        found += [(writer[v], i, v[0]) for v in dict.fromkeys(names.reads) if v in writer]
        writer.update((v, i) for v in names.writes)
    return found


def _with_feeds(facts: Facts) -> list[Edge]:
    """Feeds as outputs of an op before all others, because a feed may also skip a part."""
    ops = facts.block.ops
    written = {n for op in ops for n in op.writes}
    held = {n for n, v in facts.block.vars.items() if v.persistable}
    return [
        (OUTSIDE, i, n)
        for i, op in enumerate(ops)
        for n in op.reads
        if n not in written and n not in held
    ]


def _folded(facts: Facts, edges: Sequence[Edge]) -> tuple[Group, ...]:
    ops = facts.block.ops
    sections: dict[str, list[int]] = {}
    for i, op in enumerate(ops):
        sections.setdefault(_ENDS.get(op.type) or section_of(op), []).append(i)
    namer = Namer(facts.labels, facts.scales)
    structure = Structure(facts.labels, [*edges, *_with_feeds(facts)])
    made: list[Group] = []
    forward: Group | None = None
    for name, members in sorted(sections.items(), key=lambda item: _place(item[0], item[1])):
        if name == "backward" and forward is not None:
            parts = _mirrored(forward, _gradients_of(ops, members), members, structure, namer)
            group = together("backward", parts)
        elif name in ("forward", "backward"):
            group = _scoped(ops, members, structure, namer, 0)
        else:  # Fluid gives each update a scope of its own
            group = namer.named(structure.found(members))
        if name == "forward":
            forward = group
        kind = "series" if name == "forward" else "block"
        called = _optimizer(ops, members) if name == "optimize" else name
        made.append(replace(group, name=called, kind=kind) if group.parts else group)
    shown = fitted(made)
    if len(shown) > LONG:
        gathered = namer.gathered(shown)
        shown = tuple(gathered if len(gathered) >= FEWEST else namer.gathered(shown, apart=True))
    if forward is None:
        return shown
    inside = set(forward.ops)
    here = [i for i, g in enumerate(shown) if inside.issuperset(g.ops)]
    named = dict(zip(here, placed([shown[i] for i in here], "backward" in sections), strict=True))
    return tuple(named.get(i, g) for i, g in enumerate(shown))


def _optimizer(ops: Sequence[OpDesc], members: Iterable[int]) -> str:
    """A reader's name for the ops that update parameters: "optimizer: adam"."""
    kinds = dict.fromkeys(ops[i].type for i in members if ops[i].output("ParamOut"))
    return f"optimizer: {', '.join(kinds)}" if kinds else "optimizer"


def _place(name: str, members: Sequence[int]) -> tuple[int, int]:
    return SECTIONS.index(name) if name in SECTIONS[:1] else 0, members[0]


# -- scopes ----------------------------------------------------------------------------------------


def _scope(op: OpDesc, depth: int) -> str:
    scope = op.attrs.get(OP_NAMESCOPE)
    parts = [p for p in scope.split("/") if p] if isinstance(scope, str) else []
    return parts[depth] if len(parts) > depth else ""


def _scoped(
    ops: Sequence[OpDesc], members: Sequence[int], structure: Structure, namer: Namer, depth: int
) -> Group:
    """Groups by the names of scopes; ops without a scope by structure."""
    found: dict[str, list[int]] = {}
    for i in members:
        found.setdefault(_scope(ops[i], depth), []).append(i)
    bare = found.pop("", [])
    if not found:
        return namer.named(structure.found(members))
    parts = []
    for name, inside in found.items():
        group = _scoped(ops, inside, structure, namer, depth + 1)
        kind = "series" if len(inside) > MAIN * len(members) else "block"
        parts.append(Group(name, group.ops, group.parts or (group,), kind, group.digest))
    if len(parts) == 1 and not bare:
        return parts[0]
    if bare:
        rest = namer.named(structure.found(bare))
        parts += rest.parts if rest.opens else [rest]
    parts.sort(key=lambda g: g.ops[0])
    return together("", numbered(parts) if len(parts) > MOST else parts, "series")


# -- gradients -------------------------------------------------------------------------------------


def _gradients_of(ops: Sequence[OpDesc], members: Iterable[int]) -> dict[int, int]:
    """For ops of a backward pass, the forward ops that they differentiate, found by names."""
    backward = set(members)
    writer = {n: i for i, op in enumerate(ops) if i not in backward for n in op.writes}
    found = {}
    for i in members:
        op = ops[i]
        given = [n.split(GRAD)[0] for n in op.reads if GRAD in n]
        made = [n.split(GRAD)[0] for n in op.writes if GRAD in n]
        first = given if op.type.endswith("_grad") else made
        known = [writer[n] for n in (*first, *made, *given) if n in writer]
        if known:
            found[i] = known[0]
    return found


def _mirrored(
    forward: Group,
    of: Mapping[int, int],
    members: Sequence[int],
    structure: Structure,
    namer: Namer,
) -> list[Group]:
    """The groups of the forward pass, filled with the ops of their gradients."""
    makers: dict[int, list[int]] = {}
    for i in members:
        if i in of:
            makers.setdefault(of[i], []).append(i)

    def leaf(i: int) -> Group:
        return structure.found([i])

    def mirror(group: Group) -> Group | None:
        if not group.parts:
            made = list(map(leaf, makers.pop(group.ops[0], [])))
            return together(f"gradient of {group.name}", made) if made else None
        parts = [m for m in map(mirror, group.parts[::-1]) if m is not None]
        return replace(together(group.name, parts, group.kind), name=group.name) if parts else None

    mirrored = mirror(forward)
    made = (
        list(mirrored.parts)
        if mirrored is not None and mirrored.opens
        else [mirrored]
        if mirrored
        else []
    )
    left = sorted(
        {i for rest in makers.values() for i in rest} | {i for i in members if i not in of}
    )
    if left:
        made.append(replace(namer.named(structure.found(left)), name="other gradients"))
    return sorted(made, key=lambda g: g.ops[0])
