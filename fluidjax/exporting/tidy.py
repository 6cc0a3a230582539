"""Simplifies a finished graph: removes nodes that nothing reads, and cancels adjacent
transposes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from .graph import Graph, Node

# elementwise ops, behind which a transpose may move
EACH = frozenset(
    "Relu Sigmoid Tanh Exp Log Sqrt Abs Neg Floor Ceil Round Erf Reciprocal Sign Softplus Softsign Elu Selu LeakyRelu"
    " HardSigmoid Cast Identity Not Sin Cos Tan Clip".split()
)
TWO = frozenset("Add Sub Mul Div Max Min Pow And Or Xor".split())


def tidy(g: Graph) -> None:
    """Simplify a graph and the graphs within it."""
    for node in g.nodes:
        for value in node.attrs.values():
            if isinstance(value, Graph):
                tidy(value)
    while _move(g):
        pass
    _drop(g)


def read_within(g: Graph) -> Counter[str]:
    """How often each name is read by a graph, its inner graphs and its outputs."""
    found: Counter[str] = Counter(v.name for v in g.outputs)
    for node in g.nodes:
        found.update(n for n in node.inputs if n)
        for value in node.attrs.values():
            if isinstance(value, Graph):
                found.update(read_within(value))
    return found


def _drop(g: Graph) -> None:
    read = read_within(g)
    kept: list[Node] = []
    for node in reversed(g.nodes):
        if any(read[n] for n in node.outputs):
            kept.append(node)
        else:
            read.subtract(n for n in node.inputs if n)
            for value in node.attrs.values():
                if isinstance(value, Graph):
                    read.subtract(read_within(value))
    g.nodes = kept[::-1]


def _redirect(g: Graph, old: str, new: str) -> None:
    """Make all readers of one value read another."""
    for node in g.nodes:
        node.inputs = [new if n == old else n for n in node.inputs]
        for value in node.attrs.values():
            if isinstance(value, Graph):
                _redirect(value, old, new)


def _move(g: Graph) -> bool:
    """Merge adjacent transposes, and move one behind elementwise ops. Returns whether anything
    changed.
    """
    makers = {n: node for node in g.nodes for n in node.outputs}
    read = read_within(g)
    shown = {v.name for v in g.outputs}
    changed = False
    for node in g.nodes:
        if node.kind == "Transpose":
            before = makers.get(node.inputs[0])
            if before is None or before.kind != "Transpose":
                continue
            joined = [before.attrs["perm"][a] for a in node.attrs["perm"]]
            if joined != sorted(joined):
                node.inputs, node.attrs = [before.inputs[0]], {"perm": joined}
                changed = True
            elif node.outputs[0] not in shown and read[node.outputs[0]]:
                _redirect(g, node.outputs[0], before.inputs[0])
                return True
        elif node.outputs[0] not in shown and (order := _before(g, node, makers, read)) is not None:
            _behind(g, node, order, makers)
            return True
    return changed


def _before(g: Graph, node: Node, makers: dict[str, Node], read: Counter[str]) -> list[int] | None:
    """The common order of the transposes in front of an elementwise node, if nothing else reads
    their outputs; None if there is none.
    """
    count = 1 if node.kind in EACH else 2 if node.kind in TWO else 0
    orders: list[list[int]] = []
    for name in node.inputs[:count]:
        maker = makers.get(name)
        if maker is not None and maker.kind == "Transpose" and read[name] == 1:
            orders.append(list(maker.attrs["perm"]))
        elif name not in g.names.constants:
            return None
    if not orders or any(o != orders[0] for o in orders) or len(node.inputs[:count]) != count:
        return None
    constants = [g.names.constants[n] for n in node.inputs[:count] if n in g.names.constants]
    return None if any(c.ndim > len(orders[0]) for c in constants) else orders[0]


def _behind(g: Graph, node: Node, order: list[int], makers: dict[str, Node]) -> None:
    """Compute first, then transpose; constants are transposed inversely."""
    names, out = g.names, node.outputs[0]
    count = 1 if node.kind in EACH else 2
    for i, name in enumerate(node.inputs[:count]):
        if name in makers:
            node.inputs[i] = makers[name].inputs[0]
            continue
        array = names.constants[name]
        if array.size > 1:
            wide = array.reshape((1,) * (len(order) - array.ndim) + array.shape)
            transposed = np.ascontiguousarray(wide.transpose(np.argsort(order)))
            node.inputs[i] = names.constant(transposed, f"{names.called.get(name, name)}/turned")
    inner = names.new(f"{names.called.get(out, out)}/{node.kind}")
    node.outputs = [inner]
    at = g.nodes.index(node)
    g.nodes.insert(at + 1, Node("Transpose", [inner], [out], {"perm": order}, node.place))
