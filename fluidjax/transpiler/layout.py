"""Assigns updates to pservers: the analysis from which every program of a parameter-server job is
made.

All results are the same for all trainers and pservers of a job, in any order of calls.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..dist.pserver_plan import ParamBlock, PlannedParam, PlannedTable
from ..dist.spmd.updates import on_pservers
from ..errors import FluidValueError, UnsupportedError, near
from ..ir import edit, walk
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from .learning_rate import scheduled, spread_counters
from .request import Request
from .slicing import block_shapes
from .sparse_table import distributed_table, remote_tables, sparse_grads

# Updates that take the norm of the whole parameter, among those that Fluid does not cut.
_WHOLE = frozenset({"lamb"})


@dataclass(frozen=True)
class Layout:
    """The original programs, prepared, and the results of the analysis.

    main: clips belong to backward; in asynchronous jobs the learning rate counts the steps of all
    trainers. pairs: (parameter, gradient) in the order of updates. params: the parameters, in
    blocks. sends: parameter names in the order of sends. counters: the counters of the trainers'
    steps, by trainer (asynchronous, with a learning-rate schedule).
    """

    request: Request
    main: ProgramDesc
    startup: ProgramDesc
    updates: tuple[OpDesc, ...]
    params: tuple[PlannedParam, ...]
    sends: tuple[str, ...]
    table: PlannedTable | None = None
    counters: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, PlannedParam]:
        return {p.name: p for p in self.params}

    @cached_property
    def schedule(self) -> tuple[OpDesc, ...]:
        """The ops that compute the learning rate, in order."""
        return tuple(op for op in self.main.blocks[0].ops if scheduled(op))

    @cached_property
    def updates_of(self) -> dict[str, list[OpDesc]]:
        """Parameter -> the ops of its update, in order."""
        found: dict[str, list[OpDesc]] = {}
        for op in self.updates:
            found.setdefault(op.attrs["op_role_var"][0], []).append(op)
        return found

    @cached_property
    def shared(self) -> frozenset[str]:
        """Variables that the updates of several parameters use, mainly learning rates."""
        seen: dict[str, str] = {}
        several = set()
        for param, ops in self.updates_of.items():
            for name in {n for op in ops for n in (*op.reads, *op.writes)}:
                if seen.setdefault(name, param) != param:
                    several.add(name)
        return frozenset(several.union(*(op.input("LearningRate") for op in self.updates)))

    @cached_property
    def initialisers(self) -> dict[str, tuple[int, ...]]:
        """Variable -> the position of the op that initialises it in the startup program."""
        return walk.writers(self.startup.blocks[0])

    @cached_property
    def stride(self) -> int:
        """Larger than every uid of both programs: op uid + k * stride is the k-th copy of an op."""
        return 1 + max(edit.max_uid(self.main), edit.max_uid(self.startup))

    @cached_property
    def dropped(self) -> frozenset[str]:
        """Variables that only updates read: learning rates, accumulators, temporary values.
        Trainers do not have them.
        """
        pairs = {n for op in self.updates for n in op.attrs["op_role_var"]}
        return frozenset(n for op in self.updates for n in op.reads) - pairs - self.kept

    @cached_property
    def kept(self) -> frozenset[str]:
        """The names in ops that stay with trainers."""
        gone = {op.uid for op in self.updates}
        stay = [op for op in self.main.blocks[0].ops if op.uid not in gone and not scheduled(op)]
        return frozenset(walk.mentions(edit.drop_dead_blocks(edit.replace_ops(self.main, 0, stay))))


def analyse(request: Request, main: ProgramDesc, startup: ProgramDesc) -> Layout:
    """Cut the parameters of a training program into blocks, and assign these to pservers.

    Raises FluidValueError for a program without optimizer, or one that is transpiled already;
    UnsupportedError for updates that no pserver can make by itself; and the errors of a user's
    split_method.
    """
    refuse(main)
    main = keep_clips(main)
    counters: tuple[str, ...] = ()
    if not request.sync and not request.geo:
        main, startup, counters = spread_counters(main, startup, request.trainers)
    updates = tuple(op for op in main.blocks[0].ops if edit.role(op) == edit.OPTIMIZE)
    pairs = pairs_of(main, updates)
    table = None if request.geo else distributed_table(main, pairs, updates, len(request.endpoints))
    trained = [(p, g) for p, g in pairs if p.trainable and not (table and p.name == table.name)]
    uncut = {op.attrs["op_role_var"][0] for op in updates if op.type in _WHOLE}
    params, sends = deal(request, main, trained, uncut)
    layout = Layout(request, main, startup, updates, params, sends, table, counters)
    if not request.geo:
        refuse_computed(layout)
    return layout


def refuse_computed(layout: Layout) -> None:
    """Raises UnsupportedError if a trainer would read a value that only pservers compute: a
    scheduled learning rate.
    """
    computed = {n for op in layout.schedule for n in walk.writes_with_subblocks(layout.main, op)}
    vars = layout.main.blocks[0].vars
    shared = sorted(n for n in computed & layout.kept if not vars[n].persistable)
    if shared:
        users = (
            op
            for op in layout.main.blocks[0].ops
            if shared[0] in op.reads and not scheduled(op) and op not in layout.updates
        )
        op = next(users, None)
        where = f"op '{op.type}' ({op.loc})" if op else "an op of a block"
        raise UnsupportedError(
            f"{where} reads {shared[0]!r}, which belongs to the learning rate: in pserver mode that"
            " is computed on the pservers; read it there, or transpile before this op is added"
        )


def refuse(main: ProgramDesc) -> None:
    """Raises an error for programs that cannot be cut: transpiled before, or updated by optax."""
    kinds = {op.type for op in main.blocks[0].ops}
    if kinds & {"send", "recv", "listen_and_serv"}:
        raise FluidValueError(
            "this program is transpiled already; transpile one that is freshly built, or a clone"
            " from before"
        )
    if "optax_update" in kinds:
        raise UnsupportedError(
            "op 'optax_update' updates all parameters at once, which pservers cannot share; use an"
            " optimizer of fluid.optimizer, or shard the state of this one"
            " (fluid.transpiler.shard_optimizer)"
        )


def keep_clips(main: ProgramDesc) -> ProgramDesc:
    """`main` with clips as part of backward: trainers clip, and send clipped gradients."""

    def kept(op: OpDesc) -> OpDesc:
        if edit.role(op) == edit.OPTIMIZE and not on_pservers(op):
            return replace(op, attrs=op.attrs.set(op_role=edit.BACKWARD))
        return op

    return edit.replace_ops(main, 0, map(kept, main.blocks[0].ops))


def pairs_of(main: ProgramDesc, updates: Iterable[OpDesc]) -> list[tuple[VarDesc, str]]:
    """The parameters that `updates` name, with their gradients, in order.

    Raises FluidValueError if there are none, UnsupportedError for an update that does not name its
    parameter.
    """
    found: dict[str, str] = {}
    for op in updates:
        named = op.attrs.get("op_role_var", ())
        if len(named) < 2:
            raise UnsupportedError(
                f"op '{op.type}' ({op.loc}) updates a variable without naming the parameter "
                "(op_role_var), so no pserver can own it; transpile before this op is"
                " added"
            )
        found.setdefault(named[0], named[1])
    if not found:
        raise FluidValueError(
            "this program has no optimizer, so pservers have nothing to update; call"
            " optimizer.minimize(loss) first"
        )
    vars = main.blocks[0].vars
    for name in (n for pair in found.items() for n in pair):
        if name not in vars:
            raise FluidValueError(
                f"an update names {name!r} (op_role_var), which the program does not"
                f" have{near(name, vars)}"
            )
    return [(vars[p], g) for p, g in found.items()]


def deal(
    request: Request,
    main: ProgramDesc,
    pairs: Sequence[tuple[VarDesc, str]],
    uncut: Container[str] = (),
) -> tuple[tuple[PlannedParam, ...], tuple[str, ...]]:
    """Cut parameters into blocks and give each an endpoint: the blocks of one parameter at a time,
    in the order of sends.

    uncut: parameters that stay whole. Without slicing Fluid shuffles that order by the program's
    seed, so that not all weights go to the same pservers.
    """
    count = len(request.endpoints) if request.slice_var_up else 1
    cut = {
        p.name: block_shapes(
            known_shape(p), 1 if p.name in uncut else count, request.min_block_size
        )
        for p, _ in pairs
    }
    order = list(pairs)
    if not request.slice_var_up and not request.geo:
        np.random.RandomState(main.seed).shuffle(order)  # type: ignore[arg-type]
    dispatcher = request.split_method(list(request.endpoints))
    dispatcher.reset()
    assigned = {
        p.name: dispatched(dispatcher, pieces(p, cut[p.name]), request.endpoints) for p, _ in order
    }
    remote, by_rows = remote_tables(main), sparse_grads(main)
    params = []
    for p, grad in pairs:
        sparse = grad in by_rows
        blocks = tuple(blocks_of(p, grad, cut[p.name], assigned[p.name]))
        params.append(
            PlannedParam(
                p.name,
                grad,
                known_shape(p),
                p.dtype or "float32",
                blocks,
                sparse,
                sparse and p.name in remote,
            )
        )
    return tuple(params), tuple(p.name for p, _ in order)


def known_shape(var: VarDesc) -> tuple[int, ...]:
    if not var.shape or any(n < 1 for n in var.shape):
        raise FluidValueError(
            f"parameter {var.name!r} has the shape {list(var.shape or ())}; pservers need every"
            " dimension"
        )
    return var.shape


def pieces(param: VarDesc, shapes: Sequence[tuple[int, ...]]) -> list[VarDesc]:
    """The blocks as variables, for a dispatcher."""
    if len(shapes) == 1:
        return [param]
    return [
        replace(param, name=f"{param.name}.block{i}", shape=shape, is_parameter=False)
        for i, shape in enumerate(shapes)
    ]


def dispatched(dispatcher: Any, blocks: list[VarDesc], endpoints: Sequence[str]) -> list[str]:
    """The endpoints that a dispatcher assigns to `blocks`, checked. Raises FluidValueError for
    anything but these endpoints.
    """
    assigned = dispatcher.dispatch(blocks)
    name = type(dispatcher).__name__
    if not isinstance(assigned, list | tuple) or len(assigned) != len(blocks):
        raise FluidValueError(
            f"{name}.dispatch returns a list of {len(blocks)} endpoints for {blocks[0].name!r}, not"
            f" {assigned!r}"
        )
    wrong = [e for e in assigned if e not in endpoints]
    if wrong:
        meant = near(str(wrong[0]), endpoints)
        raise FluidValueError(
            f"{name}.dispatch assigned {blocks[0].name!r} to {wrong[0]!r}{meant}, which is not a"
            " pserver"
        )
    return list(assigned)


def blocks_of(
    param: VarDesc, grad: str, shapes: Sequence[tuple[int, ...]], assigned: Sequence[str]
) -> Iterable[ParamBlock]:
    offset = 0
    for i, (shape, endpoint) in enumerate(zip(shapes, assigned, strict=True)):
        part = f".block{i}" if len(shapes) > 1 else ""
        yield ParamBlock(param.name + part, grad + part, endpoint, i, offset, shape)
        offset += math.prod(shape)
