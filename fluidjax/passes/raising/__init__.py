"""Conversion of programs of JAX's ops to Fluid's ops, which readers know and which Fluid's passes
and files support.

place.py describes one op to convert, patterns.py has rules for several ops together, rules.py for
single ops, and trial.py runs both sides; inlining.py inlines functions first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from ...ir import edit, walk
from ...ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ...ops.build import OpBuilder
from ...ops.registry import traits
from ...ops.traits import Runs
from ..base import Note, Params, Pass, Rewrite, did, refused, register
from ..match import Refused
from . import loops  # noqa: F401 - its rule is among SINGLE
from .inlining import inlined
from .patterns import PATTERNS
from .place import Place, Source
from .rules import HELD, SINGLE, Build, constant
from .trial import Raised, RaisingCertificate, Trials

__all__ = ["RaiseToFluid", "Raised", "RaisingCertificate"]


@register
@dataclass(frozen=True)
class RaiseToFluid(Pass):
    """Replace ops of JAX's (``jax.add``, as fluid.trace writes them) by Fluid's: dense layers,
        convolutions, normalisations, pools, embeddings, softmax, and the single ops between.

    A number, of shape [] in JAX, gets Fluid's shape [1].

    The program must be a forward program, for inference; ops that Fluid lacks stay, each noted with
    the reason. Every candidate is run both ways on random inputs (persistable variables have their
    values) and is not converted if more than rounding differs; the certificate holds the errors.
    """

    name: ClassVar[str] = "raise_to_fluid"

    def rewrite(self, desc: ProgramDesc, params: Params, keep: frozenset[str]) -> Rewrite:
        own = [op for op in desc.blocks[0].ops if op.type.startswith("jax.")]
        trained = next((op for op in own if _is_gradient(op)), None)
        if trained is not None:
            why = "it is of a backward pass: raise the forward program, and differentiate that"
            return Rewrite(desc, {}, (refused(trained, why),), RaisingCertificate((), (why,)))
        if not own:
            return Rewrite(desc, {}, (), RaisingCertificate((), ()))
        return _rewritten(desc, params, keep, OpBuilder.after(desc))


def _rewritten(
    desc: ProgramDesc, params: Params, keep: frozenset[str], builder: OpBuilder
) -> Rewrite:
    desc = inlined(desc, builder)
    source, trials = Source(desc), Trials(params)
    if len(desc.blocks) > 1:
        source.raise_block = partial(_block_raised, desc, params, builder)
    needed = set(keep)
    if not keep:
        read = {n for op in desc.blocks[0].ops for n in op.reads}
        needed = {n for op in desc.blocks[0].ops for n in op.writes if n not in read}
    ops: list[OpDesc] = []
    vars = dict(source.vars)
    notes: list[Note] = []
    places: list[Raised] = []
    left: list[str] = []
    stay: set[int] = set()
    for op in reversed(desc.blocks[0].ops):
        writes = list(walk.writes_with_subblocks(desc, op) if op.blocks else op.writes)
        acts = traits(op.type).runs is not Runs.STEP or any(
            source.vars[n].persistable for n in writes if n in source.vars
        )
        if not acts and not any(n in needed for n in writes):
            continue
        wanted = tuple(n for n in op.writes if n in needed)
        place, rule, why, error = _raised(op, source, builder, trials, wanted)
        if place is None:
            ops.append(op)
            stay.add(op.uid)
            walk.step_back(desc, op, needed)
            if op.type.startswith("jax."):
                notes.append(refused(op, why))
                left.append(str(notes[-1]))
            continue
        ops += reversed(place.ops)
        vars.update(place.made)
        source.blocks += place.blocks
        needed.update(place.reads)
        by = tuple(o.type for o in place.ops)
        outs = ", ".join(place.needed)
        places.append(Raised(rule, f"{op.type} -> {outs}", by, error, op.loc))
        if rule != op.type:
            notes.append(did(op, f"is {rule}: {', '.join(by)}"))
    ops = _without_copies(
        _with_numbers(ops[::-1], stay, source, vars, builder), keep | source.changed
    )
    used = {n for op in ops for n in (*op.reads, *op.writes)} | set(keep)
    kept = {n: v for n, v in vars.items() if n in used or v.persistable or v.is_data}
    block = replace(desc.blocks[0], vars=FrozenMap(kept), ops=tuple(ops))
    desc = replace(desc, blocks=(block, *desc.blocks[1:], *source.blocks))
    certificate = RaisingCertificate(tuple(places[::-1]), tuple(left[::-1]))
    return Rewrite(edit.drop_dead_blocks(desc), {}, tuple(notes[::-1]), certificate)


def _is_gradient(op: OpDesc) -> bool:
    return op.type.endswith("_vjp") or bool(int(op.attrs.get("op_role", 0)) & 1)


def _with_numbers(
    ops: Sequence[OpDesc],
    stay: Set[int],
    source: Source,
    vars: dict[str, VarDesc],
    builder: OpBuilder,
) -> list[OpDesc]:
    """The ops; remaining ones read and write numbers of shape [] as before, Fluid's those of shape
    [1]. vars: changed accordingly.
    """
    shared = {n for op in ops if op.uid not in stay for n in (*op.reads, *op.writes)}
    shared &= source.numbers
    vars.update({n: replace(vars[n], shape=()) for n in source.numbers - shared})
    found: list[OpDesc] = []
    inner: dict[str, str] = {}

    def within(name: str) -> str:
        inner[name] = source.fresh(f"{name}.number")
        vars[inner[name]] = replace(vars[name], name=inner[name], shape=())
        return inner[name]

    for op in ops:
        if op.uid not in stay or not shared.intersection((*op.reads, *op.writes)):
            found.append(op)
            continue
        for name in shared.intersection(op.reads) - inner.keys():
            found.append(builder.over("jax.reshape", name, op, within(name), new_sizes=()))
        made = sorted(shared.intersection(op.writes))
        for name in made:
            within(name)
        found.append(
            edit.rename_op(op, {n: inner[n] for n in shared.intersection((*op.reads, *made))})
        )
        for name in made:
            found.append(builder.over("jax.reshape", inner[name], op, name, new_sizes=(1,)))
    return found


def _without_copies(ops: Sequence[OpDesc], stay: Set[str]) -> list[OpDesc]:
    """Ops that read passed-on values at their source. stay: names that keep their values, or have
    several.
    """
    within = {n for op in ops if op.blocks for n in op.reads}
    same: dict[str, str] = {}
    found = []
    for op in ops:
        if same and not op.blocks:
            op = replace(op, inputs=edit.rename_op(op, same).inputs)
        if op.type == "assign":
            (x,), (out,) = op.input("X"), op.output("Out")
            if x not in stay and out not in stay and out not in within:
                same[out] = x
                continue
        found.append(op)
    return found


def _block_raised(
    desc: ProgramDesc,
    params: Params,
    builder: OpBuilder,
    block: BlockDesc,
    results: Sequence[str],
) -> BlockDesc:
    """A function's block in Fluid's ops. Raises Refused if one of JAX's stays."""
    whole = ProgramDesc((block, *desc.blocks[1:]))
    raised = _rewritten(whole, params, frozenset(results), builder)
    for op in raised.desc.blocks[0].ops:
        if op.type.startswith("jax."):
            why = next((n.what for n in raised.notes if n.refused), "")
            raise Refused(f"its block holds '{op.type}': {why}")
    return raised.desc.blocks[0]


def _raised(
    op: OpDesc, source: Source, builder: OpBuilder, trials: Trials, needed: tuple[str, ...]
) -> tuple[Place | None, str, str, float]:
    """The place with its new ops, the rule, and its error; or None, and the reason."""
    why = "Fluid has no such op"
    if not op.type.startswith("jax.") or (op.blocks and op.type not in SINGLE):
        return None, "", "it holds blocks, and Fluid's control flow is another", 0.0
    if any(n in source.changed for n in op.reads):
        return None, "", "it reads a variable that the program changes", 0.0
    for rule, build in _proposed(op, source, needed):
        place = Place(source, op, builder, needed)
        try:
            build(place)
            if not set(needed) <= {n for each in place.ops for n in each.writes}:
                raise Refused("it has several results")
            return place, rule, "", trials.error(place)
        except Refused as error:
            why = str(error)
        except Exception as error:  # an op or a shape rule rejects the proposal
            why = next(iter(str(error).splitlines()), type(error).__name__)
    return None, "", why, 0.0


def _proposed(op: OpDesc, source: Source, needed: tuple[str, ...]) -> Iterator[tuple[str, Build]]:
    known = not op.blocks and len(needed) == 1 and source.value(needed[0]) is not None
    if known and any(source.vars[n].dtype not in HELD for n in op.reads):
        yield "constant", constant  # of small integers, for which Fluid has no comparison
    yield from PATTERNS.get(op.type, [])
    if op.type in SINGLE:
        yield op.type, SINGLE[op.type]
    if known:
        yield "constant", constant
