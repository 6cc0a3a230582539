"""Learning-rate schedules of a parameter-server job: they run on every pserver, before the updates.

In a synchronous job each pserver counts rounds. In an asynchronous one the counter is the sum of
the trainers' counters: each trainer sends its steps to a counter of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir import edit
from ..ir.desc import OpDesc, ProgramDesc, VarDesc
from .making import Maker, with_attrs


def scheduled(op: OpDesc) -> bool:
    """Whether the op computes a learning rate."""
    return edit.role(op) in (edit.LRSCHED, edit.LRSCHED | edit.OPTIMIZE)


def spread_counters(
    main: ProgramDesc, startup: ProgramDesc, trainers: int
) -> tuple[ProgramDesc, ProgramDesc, tuple[str, ...]]:
    """Replace `increment` ops of the schedule by sums over one counter for each trainer.

    The counter begins at -trainers and every trainer's counter at 1, so that the first step counts
    0. Returns both programs and the names of the last such counters, by trainer; none if there is
    no counter.
    """
    make = Maker(1 + max(edit.max_uid(main), edit.max_uid(startup)))
    counters: tuple[str, ...] = ()
    added: list[VarDesc] = []
    ops = list(main.blocks[0].ops)
    for at, op in enumerate(ops):
        if not scheduled(op) or op.type != "increment":
            continue
        (counter,) = op.output("Out")
        var = main.blocks[0].vars[counter]
        counters = tuple(f"{counter}.trainer_{i}" for i in range(trainers))
        vars = [replace(var, name=name, stop_gradient=False) for name in counters]
        added += vars
        ops[at] = make.op("sum", {"X": counters}, {"Out": counter}, edit.LRSCHED, use_mkldnn=False)
        startup = _counting(startup, counter, vars, make)
    return edit.add_vars(edit.replace_ops(main, 0, ops), 0, added), startup, counters


def _counting(
    startup: ProgramDesc, counter: str, vars: Iterable[VarDesc], make: Maker
) -> ProgramDesc:
    """`startup` with the counter initialised to -trainers and the trainers' counters to 1."""
    vars = list(vars)

    def begun(op: OpDesc) -> OpDesc:
        if op.type == "fill_constant" and op.output("Out") == (counter,):
            return with_attrs(op, value=float(-len(vars)))
        return op

    ones = [
        make.op("fill_constant", {}, {"Out": v.name}, shape=v.shape, dtype=3, value=1.0)
        for v in vars
    ]
    ops = [*reversed(ones), *map(begun, startup.blocks[0].ops)]
    return edit.add_vars(edit.replace_ops(startup, 0, ops), 0, vars)
