"""Which values of a step take memory once XLA has fused it, and which of those each of them reads.

The rules are those of XLA's fusion of CPU code, as far as they matter for memory:

- convolutions, matrix products, reductions, loops, sorts and scatters write their results;
- an elementwise value, a broadcast, a slice, a pad, a transpose is computed within whatever reads it, several times if
  need be, and takes memory only if something that cannot compute it reads it, or if it leaves the step;
- what is expensive (exp, rsqrt, ...) is not computed twice, nor is a pad or a concatenation;
- what reads more than it writes (a sum of two arrays, a select) and takes memory anyway is not computed again;
- a reduction computes values of its own that nothing else reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .graph import Graph, Value

FREE = frozenset({"constant", "iota", "broadcast"})
CHEAP = FREE | frozenset(
    """abs add and ceil clamp clz compare complex concatenate convert divide dynamic-slice dynamic-update-slice floor gather
    imag is-finite maximum minimum multiply negate not or pad popcnt real remainder reverse round-nearest-afz
    round-nearest-even select shift-left shift-right-arithmetic shift-right-logical sign slice subtract transpose xor""".split()
)
DEAR = frozenset(
    """acos acosh asin asinh atan2 atanh cbrt cosh cosine erf exponential exponential-minus-one log log-plus-one logistic
    power rsqrt sine sinh sqrt tan tanh""".split()
)
FUSIBLE = CHEAP | DEAR
BRANCHING = frozenset({"pad", "concatenate"})  # their code has branches, so it is not emitted twice
IN_PLACE = FUSIBLE | frozenset({"while", "scatter"})  # may write over an operand of the same size
MOST_READS = 64  # a value that would read more is kept, which bounds the work


@dataclass(frozen=True)
class Fused:
    """reads: every value that takes memory, in program order, with the values and parameters that computing it reads."""

    graph: Graph
    reads: Mapping[Value, tuple[Value, ...]]


def fuse(graph: Graph) -> Fused:
    """The values of a graph that take memory. Linear in the graph."""
    kept, inlined = _decide(graph)
    reads: dict[Value, tuple[Value, ...]] = {}
    for v in graph.values:
        found: dict[Value, None] = {}
        for o in v.operands:
            if o.opcode == "constant":
                continue
            found.update(dict.fromkeys(reads[o]) if v in inlined.get(o, ()) else {o: None})
        reads[v] = tuple(found)
        if len(found) > MOST_READS and v not in kept and v.opcode in FUSIBLE:
            kept.add(v)
            inlined[v] = set()
    return Fused(graph, {v: reads[v] for v in graph.values if v in kept and v.opcode != "constant"})


def _decide(graph: Graph) -> tuple[set[Value], dict[Value, set[Value]]]:
    """The values that take memory, and for each value the readers that compute it themselves."""
    users: dict[Value, list[Value]] = {v: [] for v in (*graph.parameters, *graph.values)}
    for v in graph.values:
        for o in dict.fromkeys(v.operands):
            users[o].append(v)
    outputs = set(graph.outputs)
    kept: set[Value] = set()
    inlined: dict[Value, set[Value]] = {}
    reducing: set[Value] = set()  # reductions, and values that a reduction alone computes
    places: dict[Value, frozenset[Value]] = {}  # up to two of the kept values that compute this one
    for v in reversed(graph.values):
        readers = users[v]
        hosts = [u for u in readers if (u.opcode in FUSIBLE or u in reducing) and (len(readers) == 1 or u not in reducing)]
        places[v] = frozenset(sorted({p for u in hosts for p in ({u} if u in kept else places[u])}, key=lambda p: p.order)[:2])
        keep = v in outputs or v.opcode not in FUSIBLE or len(hosts) < len(readers) or _too_dear(v, hosts, places[v])
        twice = v.opcode in BRANCHING and len(readers) > 1
        if keep or twice:
            kept.add(v)
        if v.opcode == "reduce" or (v not in kept and len(readers) == 1 and readers[0] in reducing):
            reducing.add(v)
        alone = v.opcode not in FUSIBLE or twice or (keep and (v.opcode in DEAR or _reads_more(v)))
        inlined[v] = set() if alone else set(hosts)
        if alone:
            places[v] = frozenset({v})
    return kept, inlined


def _too_dear(v: Value, hosts: list[Value], places: frozenset[Value]) -> bool:
    """Whether an expensive value would be computed more than once."""
    return v.opcode in DEAR and (len(places) > 1 or any(u.opcode == "broadcast" for u in hosts))


def _reads_more(v: Value) -> bool:
    """Whether computing a value reads more than one array of its rank, and more bytes than it has."""
    large = [o for o in v.operands if o.opcode not in FREE and o.rank >= v.rank]
    return len(large) > 1 and sum(o.bytes for o in v.operands) > v.bytes
