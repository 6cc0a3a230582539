"""The environment of a trace: values by name, the context that all ops share, and random keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from ..errors import EnforceNotMet, UnsupportedError, near
from ..ir.desc import EMPTY, OpDesc, ProgramDesc
from ..ir.edit import LRSCHED, OPTIMIZE, role
from ..ir.gradients import forward_op
from ..ir.recomputed import first_time, segment
from ..ops.checking import Objection
from ..ops.concrete import known
from ..ops.registry import OpDef, lookup
from ..ops.target import PLAIN, Target
from ..ops.threefry import fold_in, new_key
from .checks import Objections, object_to
from .sizes import SizeNeeds

Env = dict[str, Any]


@dataclass
class Context:
    """The shared context of all ops of one trace.

    key: the step's random key (a KnownKey outside of a trace), None in a program without random
    ops. literal: gradient ops run the forward op again instead of using its pullback. watch: called
    with every op and its outputs (the NaN check). rank: this device's number if several run the
    program on their own data: each samples different random numbers, except for ops that update
    replicated values. sizes: which values decide sizes. in_loop: whether the op is in the block of
    a loop. objections: the possible errors in the step's word (checks.py); None: no word is kept.
    objected: whether there are any. fed: uids of ops whose integers are checked as feeds, or need
    no check. target: how ops are lowered. origins: by the id of a value, the value and its origin
    (origins.py). before: values with the shapes before a reshape in place, for gradient ops
    (in_place.py). unlike: whether a feed's dtype or shape differs from the declared one (unlike.py).
    """

    desc: ProgramDesc
    key: Any = None
    literal: bool = False
    pullbacks: dict[int, Any] = field(default_factory=dict)
    watch: Any = None
    rank: Any = None
    sizes: SizeNeeds | None = None
    in_loop: bool = False
    objections: Objections | None = None
    objected: list[bool] = field(default_factory=list)
    fed: frozenset[int] = frozenset()
    target: Target = PLAIN
    origins: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    unlike: bool = False

    def nested(self) -> Context:
        """The same context within a loop or a branch."""
        return replace(self, target=replace(self.target, nested=True))

    def object_to(self, op: OpDesc, env: Env, found: Iterable[Objection]) -> None:
        """Record an op's error in the step's word."""
        if object_to(op, env, self.objections, found):
            self.objected.append(True)


def read_slots(op: OpDesc, definition: OpDef, env: Env) -> dict[str, Any]:
    """Slot -> value of the op's inputs; lists for repeatable slots, None for @EMPTY@ within them.

    Raises UnsupportedError for a slot that the op type does not have, because an addition of a
    later Paddle would change the result.
    """
    values: dict[str, Any] = {}
    for name, names in op.inputs.items():
        if names and name not in definition.input_names:
            raise UnsupportedError(
                f"op '{op.type}' has no input slot {name!r}{near(name, definition.input_names)}"
            )
    for slot in definition.inputs:
        names = op.inputs.get(slot.name)
        if not names:
            continue
        if slot.gaps:
            values[slot.name] = [read(env, n, op) for n in names if n in env or "@GRAD" not in n]
        elif slot.many:
            values[slot.name] = [None if n == EMPTY else read(env, n, op) for n in names]
        elif names[0] != EMPTY:
            # A gradient that no op computed counts as zero; the rule sees None.
            lacks = slot.gradient or "@GRAD" in slot.name
            values[slot.name] = env.get(names[0]) if lacks else read(env, names[0], op)
    return values


def read(env: Env, name: str, op: OpDesc) -> Any:
    """The value of a name. Raises EnforceNotMet if nothing has given it one."""
    try:
        return env[name]
    except KeyError:
        raise EnforceNotMet(
            f"op '{op.type}' reads {name!r}, which nothing has computed or fed yet"
        ) from None


def write_slots(op: OpDesc, definition: OpDef, result: dict[str, Any], env: Env) -> None:
    """Bind the op's output names to its results; unnamed results are dropped.

    A name that gets no value (a gradient that is zero) has none from here on, even if it had one
    before.
    """
    for slot in definition.outputs:
        names = op.outputs.get(slot.name)
        if not names:
            continue
        value = result.get(slot.name)
        if value is None:
            if any(n != EMPTY for n in names):
                raise EnforceNotMet(
                    f"op '{op.type}' gives no {slot.name} with these inputs and attributes"
                )
            continue
        values = value if slot.many else (value,)
        if len(values) != len(names):
            raise EnforceNotMet(
                f"op '{op.type}' gives {len(values)} variables as {slot.name}, but the program"
                f" names {len(names)}"
            )
        for name, one in zip(names, values, strict=True):
            if one is None:
                env.pop(name, None)
            elif name != EMPTY:
                env[name] = one


def op_key(op: OpDesc, ctx: Context, inputs: Mapping[str, Any]) -> Any:
    """The key of one random op. inputs: its values by slot; a dropout's mask depends only on its
    Seed.

    A nonzero ``seed`` attribute of the op fixes its numbers in every step, as in Paddle. With the
    program's seed, or none, every step samples new numbers: fold_in(step key, uid). A gradient op
    that runs its forward op again uses the forward op's numbers, and so does an op that the
    backward pass recomputes.
    """
    definition = lookup(op.type)
    if definition.forward is not None:
        forward = forward_op(ctx.desc, op, lookup(definition.forward))
        if forward is None:
            raise EnforceNotMet(
                f"op '{op.type}' needs the random numbers of its forward op, but the program has no"
                " such op"
            )
        op = forward
    if segment(op) is not None:
        op = first_time(ctx.desc, op)
    given = inputs.get("Seed") if op.type == "dropout" else None
    if given is not None:
        value = known(given)
        return (
            new_key(int(value[0]), like=ctx.key) if value is not None else jax.random.key(given[0])
        )
    seed = int(op.attrs.get("seed", 0) or 0)
    fixed = op.attrs.get("fix_seed", True) and seed != definition.defaults.get("seed", 0)
    if seed and fixed and seed != ctx.desc.seed:
        return new_key(seed, like=ctx.key)
    if ctx.key is None:
        raise EnforceNotMet(f"op '{op.type}' samples random numbers, so the step needs a key")
    key = fold_in(ctx.key, op.uid)
    return key if ctx.rank is None or same_on_all_ranks(op) else fold_in(key, ctx.rank)


def same_on_all_ranks(op: OpDesc) -> bool:
    """Whether all ranks sample the same numbers for this op: ops that update parameters must."""
    return bool(role(op) & (OPTIMIZE | LRSCHED))


def requested(op: OpDesc) -> Mapping[str, int]:
    """Output slots that name at least one variable, with their numbers of names."""
    return {
        slot: len(names) for slot, names in op.outputs.items() if any(n != EMPTY for n in names)
    }
