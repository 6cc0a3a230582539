"""In which order XLA's memory-optimised scheduler runs a fused step, and how much is alive at the worst moment.

The order is that of XLA's depth-first scheduler: a value is computed after its operands, and of several operands first the
one whose ancestors have more readers, then the one whose ancestors are larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .fusion import IN_PLACE, Fused
from .graph import Value


@dataclass(frozen=True)
class Peak:
    """The most bytes that are alive beside the parameters, and the value that is computed then."""

    bytes: int
    at: Value | None


def order(fused: Fused) -> list[Value]:
    """The values that take memory, in the order in which they are computed."""
    reads = fused.reads
    roots = list(dict.fromkeys(fused.graph.outputs))
    readers: dict[Value, int] = dict.fromkeys(roots, 1)
    for operands in reads.values():
        for o in operands:
            readers[o] = readers.get(o, 0) + 1
    plain = _post_order(roots, lambda v: reads.get(v, ()))
    extra: dict[Value, int] = {}
    total: dict[Value, int] = {}
    so_far = 0
    for v in plain:  # both sums grow with every path to a value, so XLA bounds them by what there is
        so_far += v.bytes
        extra[v] = min(len(plain), readers[v] - 1 + sum(extra[o] for o in reads.get(v, ())))
        total[v] = min(so_far, v.bytes + sum(total[o] for o in reads.get(v, ())))

    def first(values: Iterable[Value]) -> list[Value]:
        return sorted(values, key=lambda v: (-extra[v], -total[v], v.order))

    return [v for v in _post_order(first(roots), lambda v: first(reads.get(v, ()))) if v in reads]


def _post_order(roots: Iterable[Value], operands: Callable[[Value], Iterable[Value]]) -> list[Value]:
    found: dict[Value, bool] = {}
    result = []
    for root in roots:
        if root in found:
            continue
        found[root] = True
        stack = [(root, iter(operands(root)))]
        while stack:
            v, rest = stack[-1]
            for o in rest:
                if o not in found:
                    found[o] = True
                    stack.append((o, iter(operands(o))))
                    break
            else:
                result.append(v)
                stack.pop()
    return result


def peak(fused: Fused) -> Peak:
    """The most bytes alive beside the parameters when the values are computed in that order.

    A value lives from its computation to its last reader. It may be written over an operand that dies with it, and what
    takes over a parameter's memory needs none of its own, unless the old value is still to be read.
    """
    graph, sequence = fused.graph, order(fused)
    last = {o: at for at, v in enumerate(sequence) for o in fused.reads[v]}
    dying: dict[int, list[Value]] = {}
    for o, at in last.items():
        dying.setdefault(at, []).append(o)
    outputs = set(graph.outputs)
    live: dict[Value, int] = {}
    now, best = 0, Peak(0, None)
    for at, v in enumerate(sequence):
        ends = [o for o in dying.get(at, ()) if o not in outputs]
        over = graph.takes_over.get(v)
        if over is None:
            live[v] = v.bytes
            now += v.bytes
            freed = _written_over(v, ends, live)
            now -= live.pop(freed) if freed else 0
        elif last.get(over, -1) > at:
            live[over] = over.bytes
            now += over.bytes
        if now + v.inside > best.bytes:
            best = Peak(now + v.inside, v)
        for o in ends:
            now -= live.pop(o, 0)
        if v not in last and v not in outputs:
            now -= live.pop(v, 0)
    return best


def _written_over(v: Value, ends: Iterable[Value], live: dict[Value, int]) -> Value | None:
    if v.opcode not in IN_PLACE:
        return None
    return next((o for o in ends if o in live and o is not v and o.bytes == v.bytes), None)
