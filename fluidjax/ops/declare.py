"""``@op``: an op type declared from a function's signature.

    @op(outs="Out", grad="X Y")
    def mul(X: Array, Y: Array, *, x_num_col_dims: int = 1, y_num_col_dims: int = 1):
        \"\"\"Out = flatten(X, x_num_col_dims) @ flatten(Y, y_num_col_dims).\"\"\"

Positional parameters are input slots: ``X: Array``, ``X: Array | None`` (optional), ``Xs:
list[Array]`` (repeatable), ``X: Ragged`` or ``X: Array | Ragged`` (takes sequences without
conversion; other slots see plain rows), ``X: Array | SelectedRows`` (takes sparse rows too; other
slots refuse them), ``Xs: list[Array | None]`` (gradients that nothing computed are left out).
Keyword-only parameters are attributes, their annotation is Paddle's attribute type; those that
later.py lists for the op are not written by default. A ``key`` parameter marks a random op, a
``target`` one an op that is lowered in several ways (target.py). `outs` names the
output slots: ``Out``, ``Outs*`` (repeatable: the function returns a list), ``Mask?`` (optional),
``XShape~`` (Paddle's "intermediate": it exists for the gradient and has none of its own).

`grad` names the forward slots that the gradient op takes besides the gradients of the outputs; the
op is then differentiated by jax.vjp at exactly those inputs. :func:`grad_of` declares a rule by
hand instead, which is needed where Paddle's gradient op does not take the forward inputs
(``relu_grad`` sees only Out).
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Unpack

from ..errors import FluidTypeError
from ..ir.desc import FrozenMap
from .attributes import ATTR_TYPES, REQUIRED, Array, Attr, parameters
from .catalog import register
from .control_interface import ControlOp
from .definition import GradDef, OpDef, Slot, Unwritten, WriteGrad
from .derivative import add_grad, plain_graddef, vjp_rule
from .later import LATER
from .ragged import Ragged
from .selected import SelectedRows
from .traits import Given, Traits


def parse_slots(text: str) -> tuple[Slot, ...]:
    """Slots from ``"Y MeanOut Mask? Outs* XShape~"``."""
    return tuple(
        Slot(word.rstrip("*?~"), many="*" in word, optional="?" in word, intermediate="~" in word)
        for word in text.split()
    )


@cache
def _input_slot(name: str, hint: Any) -> Slot:
    parts = (
        typing.get_args(hint)
        if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
        else (hint,)
    )
    optional = type(None) in parts
    many = any(typing.get_origin(p) is list for p in parts)
    ragged = any(p is Ragged or Ragged in typing.get_args(p) for p in parts)
    gaps = many and any(
        type(None) in typing.get_args(each) for p in parts for each in typing.get_args(p)
    )
    return Slot(
        name,
        many=many,
        optional=optional,
        ragged=ragged,
        selected=_mentions(hint, SelectedRows),
        gaps=gaps,
    )


def _mentions(hint: Any, kind: type) -> bool:
    return hint is kind or any(_mentions(part, kind) for part in typing.get_args(hint))


def op(
    kind: str | None = None,
    *,
    outs: str,
    grad: str | None = None,
    nograd: str = "",
    grad_outs: str | None = None,
    grad_type: str | None = None,
    when: Mapping[str, str] | None = None,
    needs: Mapping[str, str] | None = None,
    inplace: Mapping[str, str] | None = None,
    infer: Callable[..., Any] | None = None,
    attrs: Mapping[str, Attr] | None = None,
    write_grad: WriteGrad | Unwritten | None = None,
    **traits: Unpack[Given],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an op type from a function; the function itself is returned unchanged.

    kind: the op type, if it is not the function's name (``sum``, ``abs``).
    outs: output slots, see the module's text.
    grad: forward slots (inputs, outputs) that the gradient op takes; None: the op has no gradient.
    nograd: input slots that never get a gradient (labels, running statistics).
    grad_outs: outputs whose gradients the gradient op takes; default all but the intermediate ones.
    grad_type: the gradient op's type; default ``<kind>_grad``.
    when, needs: slots that the gradient op does not always have, as in GradDef.
    inplace: output slot -> input slot that Paddle writes in place (``{"MeanOut": "Mean"}``).
    attrs: further attributes, for a function that takes ``**attrs`` because Python reserves a name
    (``lambda``). infer: a separate shape rule, see infer.py; the default runs the function under
    jax.eval_shape. write_grad: a function that writes the gradient ops, or the advice of the error
    if there are none. traits: further properties of the op, see traits.py.
    """

    def declare(fn: Callable[..., Any]) -> Callable[..., Any]:
        name = kind or fn.__name__
        inputs, all, random = signature(fn)
        own = {n: a for n, a in all.items() if n not in LATER.get(name, ())}
        definition = register(
            OpDef(
                name,
                fn,
                inputs,
                parse_slots(outs),
                {**own, **(attrs or {})},
                random,
                dict(inplace or {}),
                infer=infer,
                write_grad=write_grad,
                doc=inspect.getdoc(fn) or "",
                traits=Traits(**traits),
                later={n: a for n, a in all.items() if n not in own},
                targeted="target" in parameters(inspect.unwrap(fn))[1],
            )
        )
        if grad is not None:
            plain = plain_graddef(definition, grad, nograd, grad_outs, grad_type)
            graddef = replace(plain, when=FrozenMap(when or {}), needs=FrozenMap(needs or {}))
            add_grad(definition, graddef, vjp_rule(definition, graddef), derived=True)
        return fn

    return declare


def signature(fn: Callable[..., Any]) -> tuple[tuple[Slot, ...], dict[str, Attr], bool]:
    """Input slots, attributes and whether the function takes a random key."""
    fn = inspect.unwrap(fn)
    positional, keyword_only = parameters(fn)
    defaults = fn.__kwdefaults__ or {}
    inputs = tuple(
        _input_slot(name, _hint(fn, name, Array)) for name in positional if name != "key"
    )
    attrs = {}
    for name in keyword_only:
        if name in ("key", "target"):
            continue
        hint, default = _hint(fn, name), defaults.get(name, REQUIRED)
        if hint not in ATTR_TYPES:
            raise FluidTypeError(
                f"{fn.__name__}: attribute {name!r} needs one of the annotations {list(ATTR_TYPES)}"
            )
        attrs[name] = Attr(
            name, ATTR_TYPES[hint], tuple(default) if isinstance(default, list | tuple) else default
        )
    return inputs, attrs, "key" in (*positional, *keyword_only)


_known: dict[tuple[str, str], Any] = {}


def _hint(fn: Callable[..., Any], name: str, default: Any = None) -> Any:
    """The annotation of a parameter. A module's few distinct texts are cached: a look-up for every
    op took a tenth of the import.
    """
    hint = fn.__annotations__.get(name, default)
    if not isinstance(hint, str):
        return hint
    key = fn.__module__, hint
    if key not in _known:

        def bare() -> None: ...

        bare.__annotations__ = {"it": hint}
        _known[key] = typing.get_type_hints(bare, fn.__globals__)["it"]
    return _known[key]


def control_op(
    kind: str, *, ins: str = "", outs: str = "", attrs: Mapping[str, Attr] | None = None,
    grad: GradDef | None = None, write_grad: WriteGrad | Unwritten | None = None, forward: str | None = None, doc: str = "",
    control: ControlOp | None = None, infer: Callable[..., Any] | None = None, **traits: Unpack[Given],
) -> OpDef:  # fmt: skip
    """Declare an op that is not a function of arrays: it has sub-blocks, or communicates with the
    host or other processes.

    Trait `runs` says what runs it, `control` how (control_interface.py; None: no step does),
    `write_grad` writes its gradient (see OpDef), and `infer` gives its shapes (see infer.py; None:
    nothing is inferred).
    """
    return register(
        OpDef(
            kind, None, parse_slots(ins), parse_slots(outs), dict(attrs or {}), grad=grad, write_grad=write_grad,
            forward=forward, doc=doc, traits=Traits(**traits), control=control or ControlOp(), infer=infer,
        )
    )  # fmt: skip
