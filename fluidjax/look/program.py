"""A program as HTML: a fold for each role, one op on each line, blocks within the op that runs
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..ir.desc import BlockDesc, OpDesc, ProgramDesc, VarDesc
from ..ir.lexis import base_of
from ..ir.text import summary
from ..ir.walk import weights
from .frame import count, esc, fold, fragment, page
from .graph import graph
from .roles import SECTIONS, section_of
from .rows import Rows

OPEN = 300  # ops that are unfolded at first
DEEPEST = 8  # nesting of blocks; browsers and readers have a limit
_DECLARED = (
    ("param", "parameters"),
    ("data", "data"),
    ("persist", "state"),
    ("var", "other variables"),
)


def to_html(desc: ProgramDesc, script: bool = True, above: str = "") -> str:
    """The program as an element for notebooks: sections by role that fold, a search, and details on
    hover.

    Without scripts (script=False, or if they do not run) it can be read and folded. It fetches
    nothing. above: HTML above the list; the script links the boxes of a graph there (`Graph.html`)
    with the ops.
    """
    view = _View(desc)
    inner = view.whole(above)
    return fragment(inner, view.rows.data(), script)


def to_page(desc: ProgramDesc, title: str, more: str = "", engine: str = "own") -> str:
    """The program as a document of its own: its folded graph and its ops, which link to each other.

    more: HTML of further parts behind it. engine: as in `graph`, whose errors it raises.
    """
    head = (
        "<h2>graph</h2> <small>a box with a thick border opens; that of an op tells its attributes and"
        " shapes</small>"
    )
    picture = fold(head, graph(desc, engine=engine).html(), True, ' class="fj-graph"')
    return page(to_html(desc, above=picture) + more, title)


class _View:
    def __init__(self, desc: ProgramDesc) -> None:
        self.desc = desc
        self.rows = Rows(desc)
        self.weights = weights(desc)
        self.left = dict.fromkeys(range(1, len(desc.blocks)))  # blocks that no op has shown yet
        self.unfolded = 0

    def whole(self, above: str) -> str:
        first, *kinds = summary(self.desc).split("\n")
        parts = [f'<div class="fj-head"><p>{esc(first)}</p>']
        if kinds:
            parts.append(fold("ops by type", f"<p>{esc(kinds[0])}</p>"))
        parts.append(f'</div><div class="fj-body"><div>{above}<div class="fj-list">')
        if self.desc.blocks:
            parts += self.block0(self.desc.blocks[0])
        while self.left:  # deeper than DEEPEST, or not run by any op
            idx = next(iter(self.left))
            parts.append(self.block(idx, 0))
        return "".join([*parts, "</div></div></div>"])

    def block0(self, block: BlockDesc) -> Iterable[str]:
        types, declared = _declarations(block)
        found: dict[str, list[tuple[int, OpDesc]]] = {name: [] for name in SECTIONS}
        for at, op in enumerate(block.ops):
            found[section_of(op)].append((at, op))
        yield self.variables(declared, ' data-b="0"')
        # the type is shown where the first op writes it, in the program's order, not in the
        # sections'
        lines = {at: self.row(0, at, op, types, 0) for at, op in enumerate(block.ops)}
        for name, ops in found.items():
            if not ops:
                continue
            self.unfolded += len(ops)
            rows = "".join(lines[at] for at, _ in ops)
            head = f"<h2>{name}</h2> <small>{_summary(ops)}</small>"
            yield fold(
                head,
                f'<ol data-b="0">{rows}</ol>',
                self.unfolded <= OPEN,
                f' class="fj-role fj-{name}"',
            )

    def row(self, idx: int, at: int, op: OpDesc, types: dict[str, VarDesc], depth: int) -> str:
        inner = "".join(
            self.block(ref, depth + 1) for ref in op.blocks if ref in self.left and depth < DEEPEST
        )
        before = self.desc.blocks[idx].ops[at - 1].uid if at else -1
        return self.rows.op(idx, at, op, types, inner, before)

    def block(self, idx: int, depth: int) -> str:
        """A block with its variables and ops, in their order."""
        self.left.pop(idx)
        block = self.desc.blocks[idx]
        types, declared = _declarations(block)
        rows = "".join(self.row(idx, at, op, types, depth) for at, op in enumerate(block.ops))
        links = [f"parent {block.parent}"] if block.parent != -1 else []
        links += [f"differentiates block {block.forward}"] if block.forward != -1 else []
        if depth == 0:
            links.append("run by an op further up" if self.named(idx) else "run by no op")
        self.unfolded += len(block.ops)
        head = (
            f"<b>block {idx}</b> <small>{count(len(block.ops), 'op')}; {', '.join(links)}</small>"
        )
        inner = self.variables(declared, f' data-b="{idx}"') + f'<ol data-b="{idx}">{rows}</ol>'
        return fold(head, inner, self.unfolded <= OPEN, ' class="fj-block"')

    def named(self, idx: int) -> bool:
        return any(idx in op.blocks for block in self.desc.blocks for op in block.ops)

    def variables(self, declared: Sequence[VarDesc], attributes: str) -> str:
        def kind(var: VarDesc) -> str:
            return "param" if self.weights.get(var.name) == var else base_of(var)

        kinds = {base: [v for v in declared if kind(v) == base] for base, _ in _DECLARED}
        return "".join(
            fold(
                f"<h2>{title}</h2> <small>{count(len(kinds[base]), 'array' if base == 'param' else 'variable')}</small>",
                f"<ul{attributes}>{''.join(map(self.rows.variable, kinds[base]))}</ul>",
                attributes=' class="fj-vars"',
            )
            for base, title in _DECLARED
            if kinds[base]
        )


def _declarations(block: BlockDesc) -> tuple[dict[str, VarDesc], list[VarDesc]]:
    """The temporaries, which are declared by the op that writes them first, and all other
    variables.
    """
    written = {name for op in block.ops for name in op.writes}
    inline = {n: v for n, v in block.vars.items() if n in written and base_of(v) == "var"}
    return inline, [v for n, v in block.vars.items() if n not in inline]


def _summary(ops: Sequence[tuple[int, OpDesc]]) -> str:
    kinds = Counter(op.type for _, op in ops).most_common()
    most = ", ".join(f"{kind} {n}" if n > 1 else kind for kind, n in kinds[:4])
    return f"{count(len(ops), 'op')}: {esc(most)}{', ...' if len(kinds) > 4 else ''}"
