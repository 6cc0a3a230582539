"""Gradients of gradient ops that declare none: ``tanh_grad_vjp`` is the vector-Jacobian product of
``tanh_grad``, and so on.

Paddle 1.8.5 differentiates the gradient ops of some twenty op types, and silently treats the
results of the others as constants. Here all can be differentiated, to any order. These op types are
not in the registry's list; they are made at the first look-up. Their slots: those of the gradient
op unchanged, ``DD_X_GRAD`` for the gradient that flows back into its output ``X@GRAD``, and ``D_X``
for the gradient of its input X.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from ..ir.desc import FrozenMap
from .catalog import REGISTRY, lookup
from .definition import GRAD, GradDef, OpDef, Slot
from .derivative import pullback, vjp_rule
from .target import PLAIN
from .traits import Traits

SUFFIX = "_vjp"
_UNSETTLED = {"nce_grad"}  # it takes values that depend on its inputs and on random numbers


def further_grad(kind: str) -> GradDef | None:
    """How a gradient op is differentiated by jax.vjp; None if it cannot be, or for any other op."""
    found = further(kind + SUFFIX)
    return None if found is None else _graddef(_base(lookup(kind)))


@cache
def further(kind: str) -> OpDef | None:
    """The op type of that name, if it is the gradient of a gradient op by jax.vjp."""
    base = REGISTRY.get(kind.removesuffix(SUFFIX)) if kind.endswith(SUFFIX) else None
    if (
        base is None
        or base.forward is None
        or base.fn is None
        or base.random
        or base.type in _UNSETTLED
    ):
        return None
    differentiated = _base(base)
    graddef = _graddef(differentiated)
    return OpDef(
        kind,
        _rule(differentiated, graddef),
        tuple(_slot(differentiated, name, origin) for name, origin in graddef.takes.items()),
        tuple(_slot(differentiated, name, origin) for name, origin in graddef.gives.items()),
        base.attrs,
        forward=base.type,
        origin=base.origin,
        traits=Traits(),
        later=base.later,
        targeted=base.targeted,
        doc=f"The vector-Jacobian product of {base.type}.",
    )


def inputs_of(kind: str) -> tuple[str, ...]:
    """The input slots from which the further gradient of a gradient op recomputes the
    differentiated function; none if it does not.
    """
    base = _base(lookup(kind))
    return (
        tuple(s.name for s in base.inputs if not s.gradient)
        if base.derived and not lookup(kind).derived
        else ()
    )


def _base(op: OpDef) -> OpDef:
    """A gradient op as a function of all that its outputs depend on.

    If it takes a result of its forward op into which no gradient flows back (a softmax, a
    variance), it is differentiated by its meaning: jax.vjp of the forward op. Random numbers stay
    constants.
    """
    forward = lookup(op.forward or "")
    between = {s.name for s in forward.outputs} - _flowing(forward)
    if (
        op.derived
        or forward.random
        or forward.fn is None
        or forward.forward is not None
        or between.isdisjoint(s.name for s in op.inputs)
    ):
        return op
    flowing = [s for s in op.inputs if s.gradient]
    takes = {s.name: s.name for s in [*forward.inputs, *flowing]}
    literal = GradDef(
        op.type,
        FrozenMap(takes),
        FrozenMap({s.name: s.name.removesuffix(GRAD) for s in op.outputs}),
    )
    inputs = tuple(replace(s, optional=True) for s in (*forward.inputs, *flowing))
    return replace(op, fn=vjp_rule(forward, literal), inputs=inputs, derived=True)


def _flowing(forward: OpDef) -> set[str]:
    """The outputs of an op into which gradients flow back."""
    origins = (
        [*forward.grad.takes.values()]
        if forward.grad is not None
        else [o for r in forward.reuse for o in r.ins.values()]
    )
    return {s.name for s in forward.outputs if s.name + GRAD in origins}


def _graddef(base: OpDef) -> GradDef:
    takes = {s.name: s.name for s in base.inputs} | {
        "DD_" + _plain(s.name): s.name + GRAD for s in base.outputs
    }
    gives = {"D_" + _plain(name): name for name in _through(base)}
    return GradDef(base.type + SUFFIX, FrozenMap(takes), FrozenMap(gives), needs=FrozenMap(gives))


def _plain(slot: str) -> str:
    """A slot's name as part of another's; a final ``@GRAD`` would make it the name of a gradient."""
    return slot.replace("@", "_")


def _through(base: OpDef) -> list[str]:
    """The inputs that may have a gradient: all except those that the first differentiation
    excludes, and intermediate results.
    """
    forward = lookup(base.forward or "")
    own = forward.grad if forward.grad is not None and forward.grad.type == base.type else None
    inputs, flowing = {s.name for s in forward.inputs}, _flowing(forward)
    wanted = inputs if forward.forward is not None or own is None else {*own.gives.values()}

    def passes(slot: Slot) -> bool:
        origin = slot.name if own is None else own.takes.get(slot.name, slot.name)
        return slot.gradient or origin in wanted or (origin not in inputs and origin in flowing)

    return [s.name for s in base.inputs if passes(s)]


def _slot(base: OpDef, name: str, origin: str) -> Slot:
    known = {s.name: s for s in [*base.inputs, *base.outputs]}
    like = known.get(origin) or known[origin.removesuffix(GRAD)]
    flows = origin not in known
    return Slot(
        name, many=like.many, optional=True, ragged=like.ragged and not flows, gradient=flows
    )


def _rule(base: OpDef, graddef: GradDef) -> Any:
    flowing = {s: o for s, o in graddef.takes.items() if o not in {i.name for i in base.inputs}}
    rule = base.fn
    assert rule is not None

    def run(
        inputs: Mapping[str, Any], attrs: Mapping[str, Any], wanted: Collection[str] | None = None
    ) -> dict[str, Any]:
        given = {s: v for s, v in inputs.items() if s not in flowing and v is not None}
        there = {s: o for s, o in flowing.items() if inputs.get(s) is not None}
        counts = {
            o.removesuffix(GRAD): len(v) if isinstance(v := inputs[s], list) else 1
            for s, o in there.items()
        }
        asked = replace(
            graddef,
            takes=FrozenMap(
                {s: o for s, o in graddef.takes.items() if s not in flowing or s in there}
            ),
        )
        counted = replace(base, fn=lambda values, attrs, _: rule(values, attrs, counts))
        _, pull = pullback(
            counted,
            asked,
            given,
            attrs,
            None,
            graddef.gives if wanted is None else wanted,
            attrs.get("target", PLAIN),
        )
        return pull({o.removesuffix(GRAD): inputs.get(s) for s, o in flowing.items()})

    return run
