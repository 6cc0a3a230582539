"""Writes a jaxpr with its arguments and results as a program: variables for leaves, and writes of
new values of the state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import jax

from ..base.dtypes import KEYS
from ..base.roles import OP_ROLE
from ..graph.program import Program
from ..ir.desc import OpDesc, ProgramDesc
from ..ir.verify import verify
from ..ops.registry import lookup
from .dynamic import text_of
from .names import Names, given_name
from .reading import BACKWARD, OPTIMIZE, Atom, Block, Reader, is_differentiated
from .states import Part

Renaming = Callable[[str], str] | Mapping[str, str] | None


@dataclass(frozen=True)
class Argument:
    """An argument: its part, and the usual name and the value of each leaf; if known, whether each
    leaf is trained.
    """

    part: Part
    names: tuple[str, ...]
    leaves: tuple[Any, ...]
    trained: tuple[bool, ...] | None = None


def write(
    closed: Any,
    arguments: Sequence[Argument],
    results: Sequence[Part],
    pairs: Mapping[int, int | None],
    renamed: Renaming,
    calls: str,
    strict: bool,
) -> tuple[Program, dict[str, Any], tuple[str, ...], tuple[str, ...], list[str], dict[str, str]]:
    """The program; the persistent values; the variable of each leaf of the arguments and of the
    results; the dropped hints; the implementations of persistent random keys. The variable of such
    a key holds its data.
    """
    differentiated = is_differentiated(closed.jaxpr)
    reader = Reader(Names(), calls, not differentiated, strict)
    block = reader.blocks[0]
    spans: list[list[str]] = []
    held: dict[str, Any] = {}
    keys: dict[str, str] = {}  # variables with the data of keys -> variables with the keys
    invars = iter(closed.jaxpr.invars)
    named = not differentiated and any(
        _is_under_params(n) for at in pairs for n in arguments[at].names
    )
    for at, argument in enumerate(arguments):
        taken = [reader.names.take(given_name(renamed, usual)) for usual in argument.names]
        trained = argument.trained or [
            _is_trained(n, differentiated or named) for n in argument.names
        ]
        for name, is_trained, leaf in zip(taken, trained, argument.leaves, strict=True):
            aval = next(invars).aval
            if at in pairs and jax.numpy.issubdtype(aval.dtype, jax.dtypes.prng_key):
                keys[name] = _key(reader, name, aval)
            else:
                _declare(reader, name, aval, at in pairs, is_trained)
            if at in pairs and not isinstance(leaf, jax.ShapeDtypeStruct):
                value = leaf if hasattr(leaf, "dtype") else jax.numpy.asarray(leaf)
                held[name] = jax.random.key_data(value) if name in keys else value
        spans.append(taken)
    places = tuple(name for span in spans for name in span)
    found = reader.read(block, closed.jaxpr, closed.consts, [keys.get(n, n) for n in places])
    leaves = _written(
        reader, found, results, {to: spans[at] for at, to in pairs.items() if to is not None}, keys
    )
    impls = {n: KEYS[str(block.vars[key].dtype)] for n, key in keys.items()}
    _set_update_roles(block)
    _name_updates(reader, block, leaves)
    main = Program.from_desc(ProgramDesc(tuple(b.desc() for b in reader.blocks)))
    verify(main.desc, lookup)
    return main, {**held, **reader.constants}, places, leaves, reader.dropped, impls


def _key(reader: Reader, name: str, aval: Any) -> str:
    """The variable of a random key whose data persist under this name."""
    block, kind = reader.blocks[0], jax.ShapeDtypeStruct(aval.shape, aval.dtype)
    reader.declare(block, name, jax.eval_shape(jax.random.key_data, kind), persistable=True)
    key = reader.declare(block, reader.names.fresh(f"{name}.key"), aval)
    attrs = {"impl": KEYS[str(block.vars[key].dtype)]}
    reader.emit(block, "random_wrap", {"X": [name]}, {"Out": [key]}, attrs)
    return key


def _declare(reader: Reader, name: str, aval: Any, persists: bool, is_parameter: bool) -> None:
    block = reader.blocks[0]
    if not persists:
        reader.declare(block, name, aval, is_data=True, need_check_feed=True, stop_gradient=True)
        sizes = zip(block.vars[name].dims, aval.shape, strict=False)
        dims = tuple(text and text_of(size) for text, size in sizes)
        block.vars[name] = replace(block.vars[name], dims=dims)
        return
    reader.declare(block, name, aval, persistable=True)
    var = block.vars[name]
    block.vars[name] = replace(var, is_parameter=is_parameter and not var.stop_gradient)


def _is_trained(path: str, named: bool) -> bool:
    """Whether a leaf of the state is trained. Optimizer state and batch statistics are not. With
    `named` (a training step, or state with leaves under params) only leaves under params are.
    """
    words = path.split(".")
    if any(w.startswith("opt") or w == "batch_stats" for w in words):
        return False
    return _is_under_params(path) or not named


def _is_under_params(path: str) -> bool:
    return "params" in path.split(".")


def _written(
    reader: Reader,
    found: Sequence[Atom],
    results: Sequence[Part],
    continued: Mapping[int, Sequence[str]],
    keys: Mapping[str, str],
) -> tuple[str, ...]:
    """The variable of each leaf of the results. Leaves in `continued` are written to these
    variables; random keys (those in `keys`) as their data.
    """
    block = reader.blocks[0]
    leaves: list[str] = []
    new: dict[str, Atom] = {}
    made = {n for op in block.ops for n in op.writes}
    at = 0
    for number, part in enumerate(results):
        values = found[at : at + len(part.types)]
        at += len(values)
        if number in continued:
            pairs = zip(continued[number], values, strict=True)
            changed = {n: v for n, v in pairs if v != keys.get(n, n)}
            new |= {n: _data(reader, n, v) if n in keys else v for n, v in changed.items()}
            leaves += continued[number]
        else:
            # Literals, and arguments that are returned unchanged, have variables of their own.
            leaves += [
                value
                if isinstance(value, str) and value in made
                else _copied(reader, block, reader.named(block, value), f"out.{len(leaves) + i}")
                for i, value in enumerate(values)
            ]
    _assign(reader, block, new, set(leaves) - set(new))
    return tuple(leaves)


def _data(reader: Reader, name: str, key: Atom) -> str:
    """The data of a key that continues the state of this name."""
    block = reader.blocks[0]
    fresh = reader.names.fresh(f"{name}.data")
    block.vars[fresh] = replace(block.vars[name], name=fresh, persistable=False)
    keys = [reader.named(block, key)]
    reader.emit(block, "random_unwrap", {"Keys": keys}, {"Out": [fresh]}, {})
    return fresh


def _copied(reader: Reader, block: Block, source: str, name: str | None = None) -> str:
    var = block.vars[source]
    fresh = reader.names.fresh(name or f"{source}.old")
    block.vars[fresh] = replace(
        var, name=fresh, persistable=False, is_parameter=False, is_data=False, need_check_feed=False
    )
    reader.emit(block, "copy", {"X": [source]}, {"Out": [fresh]}, {})
    return fresh


def _assign(reader: Reader, block: Block, new: Mapping[str, Atom], fetched: set[str]) -> None:
    """Write new values of the state: by the op that computes one, if nothing reads the old value
    afterwards, else by a copy at the end.
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
    block.renamed |= direct
    for name in direct:
        del block.vars[name]
    written = set(direct.values())
    rest = [
        (name, reader.named(block, value)) for name, value in new.items() if name not in written
    ]
    sources = {
        source: _copied(reader, block, source) if source in new else source for _, source in rest
    }  # a swap reads first
    for name, source in rest:
        reader.emit(block, "copy", {"X": [sources[source]]}, {"Out": [name]}, {})


def _set_update_roles(block: Block) -> None:
    """Ops behind the last op of the backward pass get the role of updates."""
    backward = [at for at, op in enumerate(block.ops) if op.attrs[OP_ROLE] == BACKWARD]
    for at in range(backward[-1] + 1 if backward else len(block.ops), len(block.ops)):
        op = block.ops[at]
        attrs = op.attrs.set(**{OP_ROLE: OPTIMIZE})
        block.ops[at] = OpDesc(op.uid, op.type, op.inputs, op.outputs, attrs, op.loc)


def _name_updates(reader: Reader, block: Block, kept: Collection[str]) -> None:
    """Name values that an update computes outside of any scope, as in optimizers, after the state
    that they end in: ``opt.adam.mu.w.mul``; if they end in several, after the common beginning of
    their names. Names in `kept` do not change.
    """
    owners: dict[str, str] = {}
    renamed: dict[str, str] = {}
    for op in reversed(block.ops):
        if op.attrs[OP_ROLE] != OPTIMIZE:
            break
        writes = [block.renamed.get(n, n) for n in op.writes]
        found = {n if block.vars[n].persistable else owners.get(n, "") for n in writes}
        owner = _shared_start(found - {""})
        for name in op.reads:
            owners[name] = _shared_start({owner, owners.get(name, owner)})
        if owner and not op.attrs.get("op_namescope"):
            free = (n for n in writes if n not in kept and not block.vars[n].persistable)
            renamed.update((n, f"{owner}.{op.type.removeprefix('jax.')}") for n in free)
    for name, base in reversed(renamed.items()):
        renamed[name] = reader.names.fresh(base)
        block.vars[renamed[name]] = replace(block.vars.pop(name), name=renamed[name])
    block.renamed |= renamed


def _shared_start(names: Collection[str]) -> str:
    """The words with which all of these dotted names begin."""
    if len(names) < 2:
        return next(iter(names), "")
    each = [name.split(".") for name in names]
    found = takewhile(lambda words: len(set(words)) == 1, zip(*each, strict=False))
    return ".".join(words[0] for words in found)
