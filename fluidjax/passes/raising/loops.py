"""jax.scan as Fluid's recurrent op: its block is converted like a program, completely or not at
all.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir import edit
from ...ir.desc import BlockDesc, BlockRef, FrozenMap, VarDesc
from ...ir.dims import bare
from ..match import Refused
from .place import Place
from .rules import single

_LAST = 2**31 - 1


@single("scan")
def scan(place: Place) -> None:
    op, source = place.op, place.source
    inner = source.desc.blocks[op.attrs["sub_block"].idx]
    if any(each.blocks for each in inner.ops):
        raise Refused("its block holds blocks")
    if not op.input("Xs") or op.attrs["length"] == 0:
        raise Refused("it goes over no array")
    rows: dict[str, str] = {}
    args = iter(op.attrs["args"])
    names = {next(args): name for name in op.input("Consts")}
    starts = [next(args) for _ in op.input("Init")]
    for arg, array in zip(args, op.input("Xs"), strict=True):
        if len(place.shape(array)) < 2:
            raise Refused("it iterates over numbers, and Fluid's rows have a shape")
        # within the block a row has the name of the array
        if array in (*rows.values(), *names.values(), *op.input("Init")):
            array = place.add("assign", {"X": array})
        rows[arg] = array
    if any(not inner.vars[n].shape for n in (*starts, *op.attrs["results"])):
        raise Refused("it carries or gives a number each time, and Fluid's states have a shape")
    mapping = {**names, **rows}
    for name in inner.vars:
        if name not in mapping and name in source.names:
            mapping[name] = source.fresh(name)
    starts = [mapping.get(n, n) for n in starts]
    results = [mapping.get(n, n) for n in op.attrs["results"]]
    own = {mapping.get(n, n): v for n, v in inner.vars.items() if n not in names}
    vars = {n: replace(v, name=n) for n, v in own.items()}
    for name in (*starts, *rows.values()):
        vars[name] = replace(vars[name], is_data=True)
    given = {n: source.vars[n] for n in names.values()}
    block = BlockDesc(
        FrozenMap({**vars, **given}), tuple(edit.rename_op(each, mapping) for each in inner.ops)
    )
    raised = source.raise_block(block, results)
    _recurrent(place, raised, starts, results, list(rows.values()), set(given))


def _recurrent(
    place: Place, body: BlockDesc, starts: list[str], results: list[str], rows: list[str], given: set[str]
) -> None:  # fmt: skip
    """Append the op, and the ops that select the last states from those of all steps."""
    op, source = place.op, place.source
    vars, ops, ends = dict(body.vars), list(body.ops), []

    def kept(name: str, at: str) -> str:
        ops.append(place.builder.over("assign", name, op, at))
        vars[at] = replace(_of(place, vars, name), name=at, persistable=False, is_data=False)
        return at

    for start, result in zip(starts, results, strict=False):
        ends.append(kept(result, source.fresh(f"{start}.next")))
    outputs, after = [], list[tuple[str, str]]()
    for result, out in zip(results[len(starts) :], op.output("Ys"), strict=True):
        if out in place.needed:
            outputs.append(kept(result, out))
    for end, out in zip(ends, op.output("Carry"), strict=True):
        if out not in place.needed:
            continue
        every = kept(end, source.fresh(f"{out}.all"))
        outputs.append(every)
        own, steps = source.vars[out], place.var(rows[0])
        length = bare((steps.dims or ("",))[0])
        dims = (length, *(own.dims or ("",) * len(own.shape or ()))) if length or own.dims else ()
        place.made[every] = replace(
            own, name=every, shape=((steps.shape or (0,))[0], *(own.shape or ())), dims=dims
        )
        after.append((every, out))
    for name in given:
        vars.pop(name, None)
    inside = {n for each in ops for n in (*each.reads, *each.writes)} | {*rows, *starts}
    held = {n: replace(v, is_data=False) for n, v in vars.items() if n in inside}
    block = BlockDesc(FrozenMap(held), tuple(ops), parent=0)
    idx = len(source.desc.blocks) + len(source.blocks) + len(place.blocks)
    place.blocks.append(block)
    scopes = source.fresh(f"{op.attrs['sub_block'].idx}.step_scopes")
    place.made[scopes] = VarDesc(scopes, kind="STEP_SCOPES", stop_gradient=True)
    states = {"initial_states": op.input("Init"), "parameters": tuple(sorted(inside & given))}
    place.ops.append(
        place.builder.op(
            "recurrent", {"inputs": rows, **states}, {"outputs": outputs, "step_scopes": scopes}, None, op,
            ex_states=starts, states=ends, has_states=bool(starts), reverse=bool(op.attrs.get("reverse")),
            is_train=False, sub_block=BlockRef(idx),
        )
    )  # fmt: skip
    last = (0, 1) if op.attrs.get("reverse") else (-1, _LAST)
    for every, out in after:
        cut = place.add(
            "slice", {"Input": every}, axes=[0], starts=[last[0]], ends=[last[1]], infer_flags=[1]
        )
        own = source.vars[out]
        sizes = [
            0 if d else n for n, d in zip(own.shape or (), own.dims or ("",) * 9, strict=False)
        ]
        if 0 in sizes and sizes.count(0) > 1:
            raise Refused(f"{out!r} has several open sizes, but reshape2 infers only one")
        place.ops.append(
            place.builder.op(
                "reshape2", {"X": cut}, {"Out": out, "XShape": _side(place, out)}, None, op,
                shape=[-1 if n == 0 else n for n in sizes],
            )
        )  # fmt: skip


def _side(place: Place, out: str) -> str:
    side = place.source.fresh(f"{out}.xshape")
    shape = place.source.vars[out].shape or ()
    place.made[side] = VarDesc(
        side, (0, 1, *shape), place.source.vars[out].dtype, stop_gradient=True
    )
    return side


def _of(place: Place, vars: dict[str, VarDesc], name: str) -> VarDesc:
    return vars.get(name) or place.source.vars[name]
