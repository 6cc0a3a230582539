"""Gradient ops: declared by hand, derived by jax.vjp, or written with ordinary ops."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import jax
import numpy as np

from ..errors import ShapeError
from ..ir.desc import FrozenMap
from .attributes import parameters
from .catalog import REGISTRY, lookup, register
from .definition import GRAD, GradDef, OpDef, Reuse, Slot
from .loops import axes_of, varying
from .ragged import Ragged, by_data, like, rows_of
from .target import PLAIN, Target
from .traits import Given, Sizes, Traits


def plain_graddef(
    fwd: OpDef, takes: str, nograd: str, grad_outs: str | None, grad_type: str | None
) -> GradDef:
    outs = (
        grad_outs.split()
        if grad_outs is not None
        else [s.name for s in fwd.outputs if not s.intermediate]
    )
    wanted = [s.name for s in fwd.inputs if s.name not in nograd.split()]
    return GradDef(
        grad_type or f"{fwd.type}_grad",
        FrozenMap({name: name for name in [*takes.split(), *(o + GRAD for o in outs)]}),
        FrozenMap({name + GRAD: name for name in wanted}),
    )


def grad_of(
    kind: str,
    takes: str,
    *,
    nograd: str = "",
    grad_outs: str | None = None,
    grad_type: str | None = None,
    wiring: Mapping[str, str] | None = None,
    gives: Mapping[str, str] | None = None,
    when: Mapping[str, str] | None = None,
    needs: Mapping[str, str] | None = None,
    alike: str = "",
    ragged: str = "",
    **traits: Unpack[Given],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the gradient op of `kind` by hand.

    The function takes the slots named in `takes` as keyword arguments, the gradient of output Out
    as ``d_Out`` (None when nothing downstream needs it), and as keyword-only parameters the forward
    op's attributes that it needs; one called `counts` gets the number of variables of each output
    slot (``{"X@GRAD": 3}``). It returns the gradient of each differentiable input, in slot order (a
    tuple if there are several).

    wiring: further input slots, name -> origin, if Paddle's name is not the origin (``{"DDX":
    "X@GRAD@GRAD"}``; the function's parameter is ``DDX``). gives: output slot -> forward slot, if
    the names are not ``X@GRAD``. when: input slot -> the condition under which the op has it;
    needs: output slot -> the input slot that it depends on, as in GradDef. alike: forward slots of
    one shape, as there. ragged: outputs of the forward op that the function takes with their LoD.
    traits: further properties of the gradient op, see traits.py.
    """

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        fwd = lookup(kind)
        plain = plain_graddef(
            fwd, takes, nograd, "" if wiring and grad_outs is None else grad_outs, grad_type
        )
        graddef = GradDef(
            plain.type,
            FrozenMap({**plain.takes, **(wiring or {})}),
            FrozenMap(gives) if gives is not None else plain.gives,
            FrozenMap(when or {}),
            FrozenMap(needs or {}),
            tuple(alike.split()),
        )
        add_grad(
            fwd,
            graddef,
            _hand_rule(fn, graddef),
            inspect.getdoc(fn) or "",
            traits=Traits(**traits),
            ragged=ragged,
            targeted="target" in parameters(inspect.unwrap(fn))[1],
        )
        return fn

    return declare


def add_grad(
    fwd: OpDef,
    graddef: GradDef,
    rule: Callable[..., Any],
    doc: str = "",
    derived: bool = False,
    traits: Traits | None = None,
    ragged: str = "",
    targeted: bool = False,
) -> None:
    """Register the gradient op that `graddef` describes and tie it to its forward op."""
    by_name = {s.name: s for s in [*fwd.inputs, *fwd.outputs]}

    def slot(name: str, origin: str) -> Slot:
        base = by_name.get(origin) or by_name[origin.removesuffix(GRAD)]
        rows = (base.ragged and not origin.endswith(GRAD)) or origin in ragged.split()
        return Slot(
            name, many=base.many, optional=True, ragged=rows, gradient=origin not in by_name
        )

    REGISTRY[fwd.type] = replace(fwd, grad=graddef)
    register(
        OpDef(
            graddef.type,
            rule,
            tuple(slot(n, o) for n, o in graddef.takes.items()),
            tuple(slot(n, o) for n, o in graddef.gives.items()),
            fwd.attrs,
            # a recomputation must draw the forward op's random numbers
            random=derived and fwd.random,
            forward=fwd.type,
            origin=fwd.origin or fwd.type,
            derived=derived,
            traits=replace(traits or Traits(), sizes=_sizes(fwd, graddef) if derived else None),
            later=fwd.later,
            targeted=targeted or (derived and fwd.targeted),
            doc=doc or f"The vector-Jacobian product of {fwd.type}.",
        )
    )


def _sizes(fwd: OpDef, graddef: GradDef) -> Sizes | None:
    """The sizes of a derived gradient op: it runs the forward op, so it needs the same values among
    its inputs.
    """
    decides = fwd.traits.sizes
    slots = (
        tuple(s for s in decides.slots if graddef.takes.get(s) == s) if decides is not None else ()
    )
    return replace(decides, slots=slots) if decides is not None and slots else None


def grad_reuses(kind: str, *ops: Reuse) -> None:
    """Declare that the gradient of `kind` is written with ordinary ops.

    These may have attributes of `kind` that they ignore, as in Paddle.
    """
    forward = lookup(kind)
    REGISTRY[kind] = replace(forward, reuse=ops)
    for reuse in ops:
        if REGISTRY.has(reuse.type):
            used = REGISTRY[reuse.type]
            more = {n: a.type for n, a in forward.attrs.items() if n not in used.attrs}
            REGISTRY[reuse.type] = replace(used, carried={**used.carried, **more})


def _hand_rule(fn: Callable[..., Any], graddef: GradDef) -> Callable[..., Any]:
    """Call a hand-written rule: slot Out@GRAD becomes the argument d_Out; results get the slots of
    `gives`.
    """
    _, wanted = parameters(inspect.unwrap(fn))
    names = {
        slot: "d_" + slot.removesuffix(GRAD) if slot.endswith(GRAD) else slot
        for slot in graddef.takes
    }

    def run(
        inputs: Mapping[str, Any], attrs: Mapping[str, Any], slots: Collection[str] | None = None
    ) -> dict[str, Any]:
        given = {arg: inputs.get(slot) for slot, arg in names.items()}
        extra = {**attrs, "counts": slots}
        result = fn(**given, **{n: extra[n] for n in wanted})
        if len(graddef.gives) == 1:
            return {next(iter(graddef.gives)): result}
        return dict(zip(graddef.gives, result, strict=True))

    def conjugate(
        inputs: Mapping[str, Any], attrs: Mapping[str, Any], slots: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The rule itself for real numbers; for complex ones, with conjugates around it, see
        conj().
        """
        if not any(_complex(v) for v in inputs.values()):
            return run(inputs, attrs, slots)
        flowing = {
            s: conj(v) if origin.endswith(GRAD) else v
            for s, origin in graddef.takes.items()
            if (v := inputs.get(s)) is not None
        }
        found = run(flowing, attrs, slots)
        return {
            s: _real_like(inputs.get(origin), conj(found[s])) for s, origin in graddef.gives.items()
        }

    return conjugate


def _complex(value: Any) -> bool:
    return any(
        jax.numpy.issubdtype(leaf.dtype, jax.numpy.complexfloating)
        for leaf in jax.tree.leaves(value)
        if hasattr(leaf, "dtype")
    )


def conj(value: Any) -> Any:
    """Gradients converted between JAX's convention and Paddle's: dL/dRe(z) + i dL/dIm(z) for a real
    loss L, the conjugate of JAX's.
    """
    return jax.tree.map(lambda leaf: jax.numpy.conj(leaf) if _complex(leaf) else leaf, value)


def _real_like(origin: Any, grad: Any) -> Any:
    """The gradient of a real input of an op on complex numbers is real."""
    return (
        grad.real
        if grad is not None and origin is not None and _complex(grad) and not _complex(origin)
        else grad
    )


def vjp_rule(fwd: OpDef, graddef: GradDef) -> Callable[..., Any]:
    """The literal meaning of a gradient op: jax.vjp of the forward op at the inputs that the op
    names.
    """

    def run(
        inputs: Mapping[str, Any], attrs: Mapping[str, Any], wanted: Collection[str] | None = None
    ) -> dict[str, Any]:
        given = {
            o: inputs[s]
            for s, o in graddef.takes.items()
            if not o.endswith(GRAD) and inputs.get(s) is not None
        }
        target = attrs.get("target", PLAIN)
        _, pull = pullback(fwd, graddef, given, attrs, attrs.get("key"), wanted, target)
        return pull(
            {
                o.removesuffix(GRAD): inputs.get(s)
                for s, o in graddef.takes.items()
                if o.endswith(GRAD)
            }
        )

    return run


def pullback(
    fwd: OpDef, graddef: GradDef, inputs: Mapping[str, Any], attrs: Mapping[str, Any], key: jax.Array | None = None,
    wanted: Collection[str] | None = None, target: Target = PLAIN,
) -> tuple[dict[str, Any], Pullback]:  # fmt: skip
    """Run `fwd` through jax.vjp: its outputs, and a function from output gradients (None: zero) to
    ``X@GRAD`` slots.

    wanted: the gradient op's output slots to compute; None for all. target: how the op is lowered.
    """
    slots = (
        graddef.gives if wanted is None else {s: o for s, o in graddef.gives.items() if s in wanted}
    )
    through = [o for o in slots.values() if inputs.get(o) is not None and _floating(inputs[o])]
    outs = [s for s in fwd.outputs if s.name + GRAD in graddef.takes.values()]

    def primal(values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        given = {**inputs, **{n: like(inputs[n], v) for n, v in values.items()}}
        result = fwd(given, attrs, key, target=target)
        return [rows_of(result[s.name]) for s in outs], result

    primals, pull, outputs = jax.vjp(primal, {n: rows_of(inputs[n]) for n in through}, has_aux=True)
    zeros = (
        {}
        if wanted is None
        else {s: _of_integers(inputs, o) for s, o in slots.items() if o not in through}
    )
    roomy = tuple(
        s.name for s in outs if isinstance(value := outputs[s.name], Ragged) and by_data(value)
    )
    return outputs, Pullback(
        pull, primals, zeros, tuple(s.name for s in outs), tuple(slots.items()), roomy
    )


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("pull", "primals", "zeros"),
    meta_fields=("outs", "slots", "roomy"),
)
@dataclass(frozen=True)
class Pullback:
    """A function from gradients of an op's outputs, by slot, to ``X@GRAD`` slots; a pytree of the
    saved values.

    pull: jax.vjp's. primals: values of the output slots `outs`. slots: the gradient op's output
    slots, and the input slots whose gradients they are. zeros: zero gradients of slots that hold
    integers. roomy: output slots with more room than the data fill; a gradient of one may have the
    true rows alone (it was made from the output's shape, or fed).
    """

    pull: Any
    primals: list[Any]
    zeros: dict[str, Any]
    outs: tuple[str, ...]
    slots: tuple[tuple[str, str], ...]
    roomy: tuple[str, ...] = ()

    def __call__(self, cotangents: Mapping[str, Any]) -> dict[str, Any]:
        found = [
            _like(p, self._whole(name, p, rows_of(cotangents.get(name))))
            for name, p in zip(self.outs, self.primals, strict=True)
        ]
        given = jax.tree.map(_cotangent, self.primals, found, is_leaf=lambda x: x is None)
        (grads,) = conj(self.pull(conj(given)))
        return {slot: grads.get(origin, self.zeros.get(slot)) for slot, origin in self.slots}

    def _whole(self, name: str, primal: Any, cotangent: Any) -> Any:
        """A cotangent with zeros for an output's padded rows. Raises ShapeError if it does not fit
        the output.
        """
        if (
            cotangent is None
            or isinstance(primal, list | tuple)
            or math.prod(cotangent.shape) == math.prod(primal.shape)
        ):
            return cotangent
        if (
            name in self.roomy
            and cotangent.shape[1:] == primal.shape[1:]
            and cotangent.shape[0] < primal.shape[0]
        ):
            missing = (primal.shape[0] - cotangent.shape[0], *primal.shape[1:])
            return jax.numpy.concatenate([cotangent, jax.numpy.zeros(missing, cotangent.dtype)])
        raise ShapeError(
            f"what flows back into {name}{list(primal.shape)} has the shape {list(cotangent.shape)}"
        )


def _of_integers(inputs: Mapping[str, Any], origin: str) -> Any:
    """The gradient of integers, if a program names one (the lengths that a decoder counts): zero;
    None for an absent value.
    """
    value = inputs.get(origin)
    return (
        None
        if value is None or isinstance(value, list | tuple)
        else jax.numpy.zeros_like(rows_of(value))
    )


def _like(primal: Any, cotangent: Any) -> Any:
    """The cotangent with the primal's list structure; None leaves stay."""
    if isinstance(primal, list | tuple):
        return type(primal)([None] * len(primal) if cotangent is None else cotangent)
    return cotangent


def _cotangent(primal: Any, cotangent: Any) -> Any:
    """A cotangent as jax.vjp wants it: zeros for None, the primal's shape and dtype, float0 for
    integers.
    """
    if not _floating(primal):
        return np.zeros(primal.shape, jax.dtypes.float0)
    if cotangent is None:
        return varying(jax.numpy.zeros(primal.shape, primal.dtype), axes_of(primal))
    if _complex(cotangent) and not _complex(primal):
        cotangent = cotangent.real
    return varying(
        jax.numpy.asarray(cotangent, primal.dtype).reshape(primal.shape), axes_of(primal)
    )


def _floating(value: Any) -> bool:
    if isinstance(value, list | tuple) and not value:
        return False
    leaf = value[0] if isinstance(value, list | tuple) else value
    return jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact)
