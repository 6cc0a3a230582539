"""Step scopes: the values that a block saves for its gradient block, and values from one of two
branches.

Fluid keeps the scope of every run of a differentiated op's block, under the name in its slot Scope
or StepScopes, and the gradient block reads the forward block's variables there. Here the name holds
a dict of the variables that a gradient block reads (one run of the block), or :class:`Scopes`, in
which they have a leading dimension of iterations.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import NotOneStep
from ..ir import walk
from ..ir.desc import EMPTY, OpDesc
from ..ir.edit import BACKWARD, role
from . import loops
from .control_interface import Call, Env
from .definition import GRAD, Unwritten
from .forms import form_of, key_of
from .tensor_array import is_array
from .tensor_array import zeros as zeros

# Results of a gradient block are not differentiated again. Nor are they in 1.8.5, which raises, or
# omits the block's gradient.
NO_SECOND = Unwritten(
    "a second derivative through a branch or a loop; call gradients() within the block, where it"
    " may be differentiated again, or set stop_gradient = True on what it gave"
)


@dataclass(frozen=True)
class Form:
    """The form of values, some known while tracing (NumPy arrays); it does not depend on the origin
    of the others.
    """

    tree: Any
    known: tuple[tuple[int, Any], ...]  # positions among the leaves, and their values

    @staticmethod
    def of(values: Mapping[str, Any]) -> tuple[Form, list[Any]]:
        """The form, and the unknown leaves."""
        leaves, tree = jax.tree.flatten(OrderedDict(values))
        known = tuple((i, v) for i, v in enumerate(leaves) if isinstance(v, np.ndarray))
        return Form(tree, known), [v for v in leaves if not isinstance(v, np.ndarray)]

    def joined(self, others: list[Any]) -> Any:
        """The values from the form and the unknown leaves."""
        leaves = list(others)
        for at, value in self.known:
            leaves.insert(at, value)
        return jax.tree.unflatten(self.tree, leaves)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("each", "known", "ran", "before"),
    meta_fields=("tree", "places", "count"),
)
@dataclass(frozen=True)
class Scopes:
    """The step scopes of a loop: the values of each iteration that gradient blocks read, split by a
    Form.

    each: leaves with a leading dimension of iterations; known: those that are equal in all, at
    `places` in `tree`. ran: which iterations ran, None: all. before: values changed in place, such
    as a counter, as before the loop. count: the number of iterations.
    """

    each: Any
    known: Any
    ran: Any
    before: Mapping[str, Any]
    tree: Any
    places: tuple[int, ...]
    count: int

    def iteration(self, leaves: Any) -> Env:
        """The variables of one iteration, from its slice of `each`."""
        return Form(self.tree, tuple(zip(self.places, self.known, strict=True))).joined(leaves)


@jax.tree_util.register_static
@dataclass(frozen=True)
class NotRun:
    """Marks a block that is known not to have run, so that its gradient block does not run either.

    In another segment, the gradient op may know less about the condition than the block's op did.
    """


NOT_RUN = NotRun()
NO_SCOPES = Scopes([], [], None, {}, jax.tree.structure({}), (), 0)


def scopes_of(form: Form, each: Any, ran: Any, before: Mapping[str, Any], count: int) -> Scopes:
    """The values of :class:`Scopes`."""
    return Scopes(
        each,
        [v for _, v in form.known],
        ran,
        before,
        form.tree,
        tuple(at for at, _ in form.known),
        count,
    )


def version(call: Call, name: str) -> tuple[int, str, int]:
    """The version of a name that this op reads: equal versions are one value within one run of the
    block.

    A gradient block reads the versions that its forward block saved.
    """
    blocks = call.desc.blocks
    for idx, block in enumerate(blocks):
        at = next((i for i, op in enumerate(block.ops) if op.uid == call.op.uid), None)
        if at is None:
            continue
        written = _writes(call, block.ops[:at], name)
        if block.forward >= 0 and not written:
            return block.forward, name, _writes(call, blocks[block.forward].ops, name)
        return idx, name, written
    return -1, name, call.op.uid


def _writes(call: Call, ops: Iterable[OpDesc], name: str) -> int:
    """The number of these ops that write a name."""
    return sum(name in walk.writes_with_subblocks(call.desc, op) for op in ops)


def left_by(call: Call, idx: int, inner: Mapping[str, Any]) -> Env:
    """The variables of block `idx`, which has run in `inner`, that a gradient block will read."""
    return {n: inner[n] for n in walk.read_back(call.desc, idx) if n in inner}


def found_by(call: Call, idx: int) -> Env:
    """The outer variables of block `idx` whose value at its start a gradient block will read,
    because the block overwrites them.

    The block reads such a variable before it writes it; a variable changed in place keeps its final
    value.
    """
    desc = call.desc
    grads = [i for i, block in enumerate(desc.blocks) if block.forward == idx]
    if not grads:
        return {}
    wanted = {n for g in grads for n in walk.captured(desc, g).reads if GRAD not in n}
    written: set[str] = set()
    first: list[str] = []
    for op in desc.blocks[idx].ops:
        reads, writes = (
            f(desc, op) for f in (walk.reads_with_subblocks, walk.writes_with_subblocks)
        )
        first += [n for n in reads if n in wanted and n not in written and n not in writes]
        written.update(writes)
    return {
        n: v
        for n in first
        if n in written and (v := call.env.get(n)) is not None and not is_array(v)
    }


def bind_gradients(call: Call, inner: Env, slot: str) -> None:
    """Rename the gradients of an output slot, which the gradient op reads, to their names in its
    block.
    """
    op = call.op
    for name, outer in zip(op.input(slot), op.input(slot + GRAD), strict=True):
        value = call.env.get(outer) if outer != EMPTY else None
        inner.pop(name + GRAD, None)
        if value is not None:
            inner[name + GRAD] = value


def made_by(call: Call, idx: int) -> set[str]:
    """The names that the ops of a gradient block, and of its nested blocks, write."""
    return {
        n
        for at in walk.nested(call.desc, [idx])
        for o in call.desc.blocks[at].ops
        for n in o.writes
    }


def used_up(call: Call, idx: int, inner: Mapping[str, Any], name: str) -> Any:
    """The gradient of a variable before its block ran, from the one after it, if the block
    overwrote it without reading the old value.

    It is zero if an op of the block itself wrote the variable; nested ops record theirs in `inner`.
    """
    forward = call.desc.blocks[call.desc.blocks[idx].forward]
    anew = any(name in o.writes for o in forward.ops if not o.blocks)
    value = inner[name + GRAD]
    return no_gradient(value) if anew else value


def either(
    call: Call,
    condition: Any,
    taken: Callable[[], Env],
    old: Env,
    nothing: Mapping[str, Any] | None = None,
) -> Env:
    """The values of `taken` if the condition is true, else `old`; a name missing in `old` is then
    zero.

    nothing: the zero of a name, if it is not a plain array (a ragged gradient keeps its sequences).

    condition: a bool if it is known while tracing; then only one side is used, and the other is
    just `old`. Raises NotOneStep if both sides' values cannot be one variable of a compiled step.
    """
    if isinstance(condition, bool):
        return taken() if condition else dict(old)
    # Traced once, for the types and for the branch. The dict is ordered, so that names do not
    # change the compiled step.
    branch = jax.jit(lambda: OrderedDict(taken()), inline=True)
    types = jax.eval_shape(branch)
    fits = {n: _fit(call, n, old[n], t) for n, t in types.items() if n in old}
    empty = {
        n: found
        for n, v in (nothing or {}).items()
        if n in types and (found := _in_form(v, types[n])) is not None
    }

    def yes() -> Env:
        return OrderedDict((n, fits[n](v) if n in fits else v) for n, v in branch().items())

    def no() -> Env:
        missing = {
            n: empty[n] if n in empty else zeros(t) for n, t in types.items() if n not in old
        }
        return OrderedDict(
            (n, missing[n] if n in missing else jax.tree.map(jnp.asarray, old[n])) for n in types
        )

    return loops.cond(condition, yes, no)


def _in_form(value: Any, type_: Any) -> Any | None:
    """A value in the form of a type that has its arrays, and its sequences if it has rows; None for
    another type.
    """
    if key_of(value) != key_of(type_):
        return None
    leaves, (types, form) = jax.tree.leaves(value), jax.tree.flatten(type_)
    if [jnp.shape(v) for v in leaves] != [t.shape for t in types]:
        return None
    return jax.tree.unflatten(form, map(jnp.asarray, leaves))


def on_gradients(op: OpDesc) -> bool:
    """Whether an op whose type is also a gradient op is one here, by its role: gradient names may
    be shared with others.
    """
    return bool(role(op) & BACKWARD)


def no_gradient(value: Any) -> Any:
    """The gradient of a value that nothing depends on."""
    return jax.tree.map(
        lambda v: jnp.zeros_like(v) if jnp.issubdtype(v.dtype, jnp.inexact) else v, value
    )


def _fit(call: Call, name: str, old: Any, new: Any) -> Callable[[Any], Any]:
    """A function that converts a branch's value to the variable's form when the branch does not
    run.
    """
    was, now = jax.tree.map(jnp.asarray, old), new
    if form_of(was) != form_of(now):
        raise NotOneStep(
            f"op '{call.op.type}' writes {name!r} in its block, which makes it {_kind(now)}, but it"
            f" holds {_kind(was)} where the block does not run, and which it is is known only when"
            " the step runs"
        )
    for a, b in zip(jax.tree.leaves(was), jax.tree.leaves(now), strict=True):
        if a.size != b.size:
            raise NotOneStep(
                f"op '{call.op.type}' gives {name!r} the shape {list(b.shape)} in its block, but it"
                f" has {list(a.shape)} where the block does not run, and which holds is known only"
                " when the step runs; give it one shape in both cases"
            )
    return lambda value: jax.tree.map(
        lambda a, b: jnp.asarray(b, a.dtype).reshape(a.shape), was, value
    )


def _kind(value: Any) -> str:
    return "a plain array" if form_of(value) == form_of(0) else f"a {type(value).__name__}"
