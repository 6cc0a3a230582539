"""``fluid.trace``: turns any JAX function into a Program that can be printed, rewritten,
differentiated, run and exported.

names.py names variables, dynamic.py handles open sizes, primitives.py maps primitives to ops,
reading.py turns a jaxpr into blocks, states.py pairs results with the arguments that they continue,
writing.py turns these into variables, and traced.py has the result.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax

from ..errors import FluidTypeError, TraceError, note
from . import modules
from .dynamic import opened
from .fitting import fit_memory
from .names import state_name
from .states import Part, StateOption, paired
from .traced import Report, Traced
from .writing import Argument, write

__all__ = ["Report", "TraceError", "Traced", "fit_memory", "trace"]

_CALLS = ("inline", "keep")
_STATIC = (
    "arguments of fluid.trace are traced: a flag or a size that Python decides by is closed over,"
    " as True is in trace(lambda x: f(x, True), x), or trace(lambda m, x: m(x, True), model, x)"
)


def trace(
    fn: Callable[..., Any],
    *args: Any,
    state: StateOption = "auto",
    names: Callable[[str], str] | Mapping[str, str] | None = None,
    calls: str = "inline",
    kwargs: Mapping[str, Any] | None = None,
    strict: bool = True,
    dynamic: Mapping[str, Sequence[str | int | None]] | None = None,
) -> Traced:
    """``fn(*args, **kwargs)`` as a program: the jaxpr of ``jax.make_jaxpr`` as ops ``jax.*``.

    fn: any function that jax.jit takes: of flax, equinox, haiku, a whole training step with optax;
    or a module of flax nnx or equinox, or a method of one, whose arrays then are the state
    ``model``. args: arrays, trees of them, or ``jax.ShapeDtypeStruct`` if only types matter; the
    program has their shapes and dtypes. args may also be modules, optimizers and other objects of
    nnx, and modules of equinox: their arrays are state. If a call changes an object of nnx, the
    program writes the changes, and the new arrays are the first results.

    state: the arguments that persist, as variables of the program that a step replaces
    (`states.paired` describes how each is paired with the result that continues it). The default is
    the containers of arrays that exactly one result continues; all others are fed. For a function
    that only reads its parameters, ``state=0`` makes them parameters of the program. names: from
    the path of a leaf (``params.Dense_0.kernel``) to the name of its variable. calls: "keep" keeps
    jitted functions as blocks of their own, "inline" reads them in place. strict: False keeps
    callbacks to Python, which run only in this process: no file of the program holds them.

    dynamic: sizes that the program leaves open, by the name of an argument or of one of its leaves:
    ``{"x": ("b", None)}`` calls the first size of x b, ``{"batch": ("b",)}`` the first size of
    every leaf of batch. Sizes of one name are equal; expressions are allowed, as in jax.export
    (``2*b``), and so is a bound (``t>=4``), below which feeds are refused. The program then runs at
    any such sizes, and prints them: ``f32[b, 16]``. Arguments may also have symbolic dimensions of
    jax.export. All other sizes are fixed to the traced ones.

    Raises TraceError for a leaf that is not an array, for a primitive that programs do not support,
    and if results are ambiguous; an exception of the function itself is passed on with a note.
    """
    if calls not in _CALLS:
        raise FluidTypeError(f"calls is {calls!r}; it may be {' or '.join(map(repr, _CALLS))}")
    for word, value in (("kwargs", kwargs), ("dynamic", dynamic)):
        if not isinstance(value, Mapping | None):
            raise FluidTypeError(f"{word} is a mapping by name, not {type(value).__name__}")
    if not (names is None or isinstance(names, Mapping) or callable(names)):
        raise FluidTypeError(f"names is a mapping or a function, not {type(names).__name__}")
    owner = modules.owner_of(fn)
    if owner is not None:
        model, method = owner
        args = (model, *args)
        labels = ["model", *_labels(getattr(model, method), len(args) - 1)]

        def fn(model: Any, *args: Any, **kwargs: Any) -> Any:
            return getattr(model, method)(*args, **kwargs)

        fn.__name__ = type(model).__name__
    elif not callable(fn):
        apply = "; trace its apply" if callable(getattr(fn, "apply", None)) else ""
        raise FluidTypeError(f"trace takes a function, not {type(fn).__name__}{apply}")
    else:
        labels = _labels(fn, len(args))
    named = dict(sorted((kwargs or {}).items()))  # in the order in which jax flattens them
    words, values = [*labels, *named], [*args, *named.values()]
    split = modules.split(fn, values, list(named))
    if split is not None:
        fn, values = split.function, list(split.values)
    trained = {} if split is None else split.trained
    arguments = list(_arguments(words, values, trained))
    if dynamic:
        values = opened(dynamic, words, values, [a.names for a in arguments])
        arguments = [
            replace(a, part=Part.of(a.part.name, value))
            for a, value in zip(arguments, values, strict=True)
        ]
    args, named = tuple(values[: len(args)]), dict(zip(named, values[len(args) :], strict=True))
    try:
        with modules.scopes(() if split is None else split.classes):
            closed, out = jax.make_jaxpr(fn, return_shape=True)(*args, **named)
    except jax.errors.ConcretizationTypeError as error:
        raise note(note(error, _traced_in(fn)), _STATIC)  # noqa: B904
    except Exception as error:
        raise note(error, _traced_in(fn))  # noqa: B904
    for value in closed.consts:
        if isinstance(value, jax.core.Tracer):
            raise TraceError(
                f"the function reads a value of another trace, {value.aval.str_short()}, that was"
                " kept when that trace ended: return it there, and hand it over as an argument"
            )
    parts = list(out) if type(out) is tuple else [out]
    if split is not None and split.continued and type(parts[-1]) is tuple:
        parts[-1:] = parts[-1]
    of_result = [f"result {i}" if type(out) is tuple else "the result" for i in range(len(parts))]
    results = [Part.of(label, part) for label, part in zip(of_result, parts, strict=True)]
    known = {} if split is None else split.continued
    pairs = paired(state, [a.part for a in arguments], results, known)
    if split is not None and state == "auto":
        pairs = {**dict.fromkeys(split.read), **pairs}
    main, held, places, leaves, dropped, keys = write(
        closed, arguments, results, pairs, names, calls, strict
    )
    in_tree, out_tree = jax.tree.structure((args, named)), jax.tree.structure(out)
    return Traced.of(main, held, in_tree, out_tree, places, leaves, dropped, pairs, keys)


def _traced_in(fn: Any) -> str:
    return f"in fluid.trace of {getattr(fn, '__name__', type(fn).__name__)}"


def _arguments(
    labels: Sequence[str], values: Sequence[Any], trained: Mapping[int, tuple[bool, ...]]
) -> Iterator[Argument]:
    """Each argument with the names of its leaves. trained: for some arguments, whether each leaf is
    trained. Raises TraceError for a leaf that is not an array.
    """
    for at, (label, value) in enumerate(zip(labels, values, strict=True)):
        leaves = jax.tree_util.tree_flatten_with_path(value)[0]
        names = [state_name(label, value, path) for path, _ in leaves]
        for name, (_, leaf) in zip(names, leaves, strict=True):
            is_array = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
            odd = is_array and getattr(leaf.dtype, "kind", "") in tuple("OSUMm")
            if odd or not (is_array or isinstance(leaf, bool | int | float | complex)):
                kind = f"{leaf.dtype} array" if odd else type(leaf).__name__
                raise TraceError(
                    f"argument {label!r} has a leaf of type {kind} at {name}, and a program holds"
                    " arrays of numbers: fix it by functools.partial, or leave it out of the tree"
                )
        types = [leaf if hasattr(leaf, "dtype") else jax.typeof(leaf) for _, leaf in leaves]
        part = Part.of(label, jax.tree.unflatten(jax.tree.structure(value), types))
        yield Argument(part, tuple(names), tuple(leaf for _, leaf in leaves), trained.get(at))


def _labels(fn: Callable[..., Any], count: int) -> list[str]:
    """The function's own names of its positional arguments."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    found = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][
        :count
    ]
    return [*found, *(f"arg{i}" for i in range(len(found), count))]
