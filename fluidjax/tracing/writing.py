"""A jaxpr with its arguments and results as a program: variables for leaves, and new values written
where state persists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import jax

from ..base.roles import OP_ROLE
from ..graph.program import Program
from ..ir.desc import EMPTY, FrozenMap, OpDesc, ProgramDesc
from ..ir.verify import verify
from ..ops.registry import lookup
from .names import Names, given_name
from .reading import BACKWARD, OPTIMIZE, Atom, Block, Reader, is_differentiated
from .states import Part

Renaming = Callable[[str], str] | Mapping[str, str] | None


@dataclass(frozen=True)
class Argument:
    """An argument: its part, and the usual name and the value of each leaf."""

    part: Part
    names: tuple[str, ...]
    leaves: tuple[Any, ...]


def write(
    closed: Any,
    arguments: Sequence[Argument],
    results: Sequence[Part],
    pairs: Mapping[int, int | None],
    renamed: Renaming,
    calls: str,
    strict: bool,
) -> tuple[Program, dict[str, Any], tuple[str, ...], tuple[str, ...], list[str]]:
    """The program; the values that persist; the variable of each leaf of the arguments and of the
    results; what was dropped.
    """
    differentiated = is_differentiated(closed.jaxpr)
    reader = Reader(Names(), calls, not differentiated, strict)
    block = reader.blocks[0]
    spans: list[list[str]] = []
    held: dict[str, Any] = {}
    invars = iter(closed.jaxpr.invars)
    for at, argument in enumerate(arguments):
        taken = [reader.names.take(given_name(renamed, usual)) for usual in argument.names]
        for name, usual, leaf in zip(taken, argument.names, argument.leaves, strict=True):
            _declare(
                reader, name, next(invars).aval, at in pairs, _is_parameter(usual, differentiated)
            )
            if at in pairs and not isinstance(leaf, jax.ShapeDtypeStruct):
                held[name] = leaf if hasattr(leaf, "dtype") else jax.numpy.asarray(leaf)
        spans.append(taken)
    places = tuple(name for span in spans for name in span)
    found = reader.read(block, closed.jaxpr, closed.consts, list(places))
    leaves = _written(
        reader, found, results, {to: spans[at] for at, to in pairs.items() if to is not None}
    )
    _tell_roles(block)
    _name_updates(reader, block, leaves)
    main = Program.from_desc(ProgramDesc(tuple(b.desc() for b in reader.blocks)))
    verify(main.desc, lookup)
    return main, {**held, **reader.constants}, places, leaves, reader.dropped


def _declare(reader: Reader, name: str, aval: Any, persists: bool, is_parameter: bool) -> None:
    if not persists:
        reader.declare(
            reader.blocks[0], name, aval, is_data=True, need_check_feed=True, stop_gradient=True
        )
        return
    block = reader.blocks[0]
    reader.declare(block, name, aval, persistable=True)
    var = block.vars[name]
    block.vars[name] = replace(var, is_parameter=is_parameter and not var.stop_gradient)


def _is_parameter(path: str, differentiated: bool) -> bool:
    """Whether a leaf of the state is trained: in a training step what is called params, in a
    forward function all but statistics.
    """
    words = path.split(".")
    if any(w.startswith("opt") or w == "batch_stats" for w in words):
        return False
    return not differentiated or "params" in words or words[0] == "model"


def _written(
    reader: Reader,
    found: Sequence[Atom],
    results: Sequence[Part],
    continued: Mapping[int, Sequence[str]],
) -> tuple[str, ...]:
    """The variable of each leaf of the results. Leaves of the results in `continued` are written to
    these variables.
    """
    block = reader.blocks[0]
    leaves: list[str] = []
    new: dict[str, Atom] = {}
    at = 0
    for number, part in enumerate(results):
        values = found[at : at + len(part.types)]
        at += len(values)
        if number in continued:
            new.update((n, v) for n, v in zip(continued[number], values, strict=True) if v != n)
            leaves += continued[number]
        else:
            leaves += [
                _fetchable(reader, block, value, f"out.{len(leaves) + i}")
                for i, value in enumerate(values)
            ]
    _assign(reader, block, new, set(leaves) - set(new))
    return tuple(leaves)


def _fetchable(reader: Reader, block: Block, value: Atom, name: str) -> str:
    """A variable of its own for a result that no op computes: a literal, or an argument that is
    returned as it is.
    """
    made = {n for op in block.ops for n in op.writes}
    if isinstance(value, str) and value in made:
        return value
    source = reader.named(block, value)
    return _copied(reader, block, source, name)


def _copied(reader: Reader, block: Block, source: str, name: str | None = None) -> str:
    var = block.vars[source]
    fresh = reader.names.fresh(name or f"{source}.old")
    block.vars[fresh] = replace(
        var, name=fresh, persistable=False, is_parameter=False, is_data=False, need_check_feed=False
    )
    reader.emit(block, "copy", {"X": [source]}, {"Out": [fresh]}, {})
    return fresh


def _assign(reader: Reader, block: Block, new: Mapping[str, Atom], fetched: set[str]) -> None:
    """Write new values of the state: by the op that makes one, where nobody needs the old value any
    more, else by a copy at the end.
    """
    made = {n: at for at, op in enumerate(block.ops) for n in op.writes}
    last_read = {n: at for at, op in enumerate(block.ops) for n in op.reads}
    users = Counter(v for v in new.values() if isinstance(v, str))
    direct = {
        value: name
        for name, value in new.items()
        if isinstance(value, str)
        and value in made
        and users[value] == 1
        and value not in fetched
        and last_read.get(name, -1) <= made[value]
        and name not in users
    }
    block.ops[:] = [_renamed(op, direct) for op in block.ops]
    for name in direct:
        del block.vars[name]
    rest = [
        (name, reader.named(block, value)) for name, value in new.items() if value not in direct
    ]
    sources = {
        source: _copied(reader, block, source) if source in new else source for _, source in rest
    }  # a swap reads first
    for name, source in rest:
        reader.emit(block, "copy", {"X": [sources[source]]}, {"Out": [name]}, {})


def _renamed(op: OpDesc, names: Mapping[str, str]) -> OpDesc:
    if not any(
        n in names for held in (op.inputs, op.outputs) for each in held.values() for n in each
    ):
        return op
    ins, outs = (
        FrozenMap({slot: tuple(names.get(n, n) for n in each) for slot, each in held.items()})
        for held in (op.inputs, op.outputs)
    )
    return OpDesc(op.uid, op.type, ins, outs, op.attrs, op.loc)


def _tell_roles(block: Block) -> None:
    """What follows the last op of the backward pass updates the state."""
    backward = [at for at, op in enumerate(block.ops) if op.attrs[OP_ROLE] == BACKWARD]
    for at in range(backward[-1] + 1 if backward else len(block.ops), len(block.ops)):
        op = block.ops[at]
        attrs = op.attrs.set(**{OP_ROLE: OPTIMIZE})
        block.ops[at] = OpDesc(op.uid, op.type, op.inputs, op.outputs, attrs, op.loc)


def _name_updates(reader: Reader, block: Block, kept: Collection[str]) -> None:
    """What an update computes outside of any scope, as optimizers do, is called after the state
    that it ends in: ``opt.adam.mu.w.mul``; where it ends in several, after what their names begin
    with. `kept` stay as they are.
    """
    owners: dict[str, str] = {}
    renamed: dict[str, str] = {}
    for op in reversed(block.ops):
        if op.attrs[OP_ROLE] != OPTIMIZE:
            break
        found = {
            n if block.vars[n].persistable else owners.get(n, "") for n in op.writes if n != EMPTY
        }
        owner = _shared_start(found - {""})
        for name in op.reads:
            owners[name] = _shared_start({owner, owners.get(name, owner)})
        if owner and not op.attrs.get("op_namescope"):
            free = (
                n
                for n in op.writes
                if n != EMPTY and n not in kept and not block.vars[n].persistable
            )
            renamed.update((n, f"{owner}.{op.type.removeprefix('jax.')}") for n in free)
    for name, base in reversed(renamed.items()):
        renamed[name] = reader.names.fresh(base)
        block.vars[renamed[name]] = replace(block.vars.pop(name), name=renamed[name])
    block.ops[:] = [_renamed(op, renamed) for op in block.ops]


def _shared_start(names: Collection[str]) -> str:
    """The words with which all of these dotted names begin."""
    each = [name.split(".") for name in names]
    found = takewhile(lambda words: len(set(words)) == 1, zip(*each, strict=False))
    return ".".join(words[0] for words in found)
