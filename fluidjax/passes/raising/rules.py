"""The conversion of single ops of JAX's to Fluid's. Larger patterns are tried first (patterns.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...base.dtypes import enum_of, numpy_dtype
from ...ir.desc import OpDesc
from ...ir.dims import apart
from ..match import Refused
from .place import KNOWN, Place
from .sizes import number

Build = Callable[[Place], None]
SINGLE: dict[str, Build] = {}
_LARGEST = 3.4028234663852886e38
_END = 2**31 - 1  # a slice to it goes to the end
HELD = ("float32", "int32", "int64", "bool")  # dtypes of assign_value


def single(*kinds: str) -> Callable[[Build], Build]:
    def keep(build: Build) -> Build:
        SINGLE.update((f"jax.{kind}", build) for kind in kinds)
        return build

    return keep


_UNARY = {
    "exp": "exp", "log": "log", "tanh": "tanh", "sqrt": "sqrt", "rsqrt": "rsqrt", "abs": "abs", "floor": "floor",
    "ceil": "ceil", "sin": "sin", "cos": "cos", "square": "square", "logistic": "sigmoid", "erf": "erf", "sign": "sign",
    "asin": "asin", "acos": "acos", "atan": "atan", "stop_gradient": "assign", "copy": "assign",
    "sharding_constraint": "assign",
    "not": "logical_not", "log1p": "log1p",
}  # fmt: skip


@single(*_UNARY)
def unary(place: Place) -> None:
    place.add(_UNARY[place.op.type[4:]], {"X": place.op.input("X")[0]}, last=True)


@single("neg")
def neg(place: Place) -> None:
    place.add("scale", {"X": place.op.input("X")[0]}, last=True, scale=-1.0)


@single("erfc")
def erfc(place: Place) -> None:
    found = place.add("erf", {"X": place.op.input("X")[0]})
    place.add("scale", {"X": found}, last=True, scale=-1.0, bias=1.0)


@single("expm1")
def expm1(place: Place) -> None:
    """tanh(x / 2) (exp(x) + 1), which is accurate for small x."""
    x = place.op.input("X")[0]
    half = place.add("tanh", {"X": place.add("scale", {"X": x}, scale=0.5)})
    more = place.add("scale", {"X": place.add("exp", {"X": x})}, scale=1.0, bias=1.0)
    place.add("elementwise_mul", {"X": half, "Y": more}, last=True)


@single("is_finite")
def is_finite(place: Place) -> None:
    """x - x is 0."""
    x = place.op.input("X")[0]
    gone = place.add("elementwise_sub", {"X": x, "Y": x})
    zero = _number(place, place.op, 0.0, "X")
    place.add("equal", {"X": gone, "Y": zero}, last=True)


@single("dim_as_value")
def dim_as_value(place: Place) -> None:
    """An open size as a number, if what is fed gives it."""
    _cast_to_out(place, place.size(place.op.attrs["dim"]))


@single("integer_pow")
def integer_pow(place: Place) -> None:
    x, y = place.op.input("X")[0], place.op.attrs["y"]
    if y == 2:
        place.add("square", {"X": x}, last=True)
    else:
        place.add("pow", {"X": x}, last=True, factor=float(y))


@single("convert_element_type")
def cast(place: Place) -> None:
    x, out = place.op.input("X")[0], place.op.attrs["new_dtype"]
    if place.var(x).dtype == out:
        place.add("assign", {"X": x}, last=True)
        return
    place.add(
        "cast", {"X": x}, last=True, in_dtype=enum_of(place.var(x).dtype), out_dtype=enum_of(out)
    )


_BINARY = {
    "add": "elementwise_add", "sub": "elementwise_sub", "mul": "elementwise_mul", "div": "elementwise_div",
    "max": "elementwise_max", "min": "elementwise_min", "pow": "elementwise_pow", "rem": "elementwise_mod",
    "eq": "equal", "ne": "not_equal", "lt": "less_than", "le": "less_equal", "gt": "greater_than", "ge": "greater_equal",
    "and": "logical_and", "or": "logical_or", "xor": "logical_xor",
}  # fmt: skip
_SWAPPED = {
    "add": "add", "mul": "mul", "max": "max", "min": "min", "eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt",
    "ge": "le", "and": "and", "or": "or", "xor": "xor",
}  # fmt: skip


@single(*_BINARY)
def binary(place: Place) -> None:
    op, kind = place.op, place.op.type[4:]
    x, y = place.literal(op, "X"), place.literal(op, "Y")
    if (
        any(place.dims(n) != place.dims(place.out.name) for n in op.reads)
        and len(list(op.reads)) == 2
    ):
        # a broadcast number enlarges the other operand
        x, y = (
            None if place.dims(o) != place.dims(place.out.name) else n
            for n, o in ((x, op.input("Y")[0]), (y, op.input("X")[0]))
        )
    floats = place.out.dtype in ("float32", "float64", "float16")
    if y is not None and op.input("X"):
        if floats and _by_number(place, kind, op.input("X")[0], float(y), swapped=False):
            return
        _elementwise(place, kind, op.input("X")[0], _number(place, op, y, "X"))
    elif x is not None and op.input("Y"):
        if floats and _by_number(place, kind, op.input("Y")[0], float(x), swapped=True):
            return
        if kind in _SWAPPED:
            _elementwise(place, _SWAPPED[kind], op.input("Y")[0], _number(place, op, x, "Y"))
            return
        first = _number(place, op, x, "Y")
        whole = place.dims(place.out.name)
        first = expanded(place, place.reshaped(first, [1] * len(whole)), whole)
        _elementwise(place, kind, first, op.input("Y")[0])
    else:
        _elementwise(place, kind, op.input("X")[0], op.input("Y")[0])


def _number(place: Place, op: OpDesc, value: Any, beside: str) -> str:
    dtype = place.var(op.input(beside)[0]).dtype
    held: dict[str, Any] = {"shape": [1], "value": float(value), "dtype": enum_of(dtype)}
    if "int" in str(dtype):
        held["str_value"] = str(int(value))
    return place.add("fill_constant", {}, **held)


def _by_number(place: Place, kind: str, x: str, n: float, swapped: bool) -> bool:
    """An op of one array and a number; False if Fluid has no such op."""
    scale: dict[str, float] | None = None
    if kind == "add":
        scale = {"scale": 1.0, "bias": n}
    elif kind == "sub":
        scale = {"scale": -1.0, "bias": n} if swapped else {"scale": 1.0, "bias": -n}
    elif kind == "mul":
        scale = {"scale": n}
    elif kind == "div" and not swapped and n:
        scale = {"scale": 1.0 / n}
    if scale is not None and all(math.isfinite(v) for v in scale.values()):
        place.add("scale", {"X": x}, last=True, **scale)
        return True
    if kind == "div" and swapped:
        found = place.add("reciprocal", {"X": x}, last=n == 1.0)
        if n != 1.0:
            place.add("scale", {"X": found}, last=True, scale=n)
        return True
    if kind == "max" and n == 0.0:
        place.add("relu", {"X": x}, last=True)
        return True
    if kind in ("max", "min") and math.isinf(n) and (n < 0) == (kind == "max"):
        place.add("assign", {"X": x}, last=True)
        return True
    if kind in ("max", "min") and math.isfinite(n):
        bounds = {"min": n, "max": _LARGEST} if kind == "max" else {"min": -_LARGEST, "max": n}
        place.add("clip", {"X": x}, last=True, **bounds)
        return True
    if kind == "pow" and not swapped:
        place.add("pow", {"X": x}, last=True, factor=n)
        return True
    return False


def _elementwise(place: Place, kind: str, x: str, y: str) -> None:
    """An op of two arrays; one that is broadcast over the other's axes is used before broadcasting."""
    whole = place.dims(place.out.name)
    if place.dims(x) != whole or _is_spread(place, x):
        if kind in _SWAPPED and place.dims(y) == whole and not _is_spread(place, y):
            kind, x, y = _SWAPPED[kind], y, x
        elif place.dims(x) != whole and place.dims(y) == whole:
            if kind == "sub":
                found = place.add("scale", {"X": y}, scale=-1.0)
                _joined(place, "elementwise_add", found, x)
                return
            if kind == "div":
                found = place.add("reciprocal", {"X": y})
                _joined(place, "elementwise_mul", found, x)
                return
        if place.dims(x) != whole:
            x = expanded(place, x, whole)
    _joined(place, _BINARY[kind], x, y)


def _is_spread(place: Place, name: str) -> bool:
    _, axes = place.spread(name)
    return len(axes) < sum(n != 1 for n in place.dims(name))


def _joined(place: Place, kind: str, x: str, y: str) -> None:
    if kind.startswith("logical_"):
        whole = place.dims(place.out.name)
        x, y = (n if place.dims(n) == whole else expanded(place, n, whole) for n in (x, y))
        place.add(kind, {"X": x, "Y": y}, last=True)
        return
    y, axis = aligned(place, x, y)
    if kind in ("equal", "not_equal") and "float" in str(place.var(x).dtype):
        # Fluid's take floats for equal that differ by less than 1e-8, and an infinity for none
        both = [
            place.sized(place.add(op, {"X": x, "Y": y}, axis=axis), place.dims(place.out.name))
            for op in ("less_equal", "greater_equal")
        ]
        found = place.add("logical_and", {"X": both[0], "Y": both[1]}, last=kind == "equal")
        if kind == "not_equal":
            place.add("logical_not", {"X": found}, last=True)
        return
    place.add(kind, {"X": x, "Y": y}, last=True, axis=axis)


def aligned(place: Place, x: str, y: str) -> tuple[str, int]:
    """`y` in the form for an elementwise op with `x`: without its broadcast axes, and the axis at
    which it begins.
    """
    if place.dims(x) == place.dims(y) and not _is_spread(place, y):
        return y, -1
    if place.shape(y) == (1,):
        return y, -1
    source, axes = place.spread(y)
    if not axes:
        return place.reshaped(source, (1,)), -1
    run = tuple(range(axes[0], axes[0] + len(axes)))
    sizes = tuple(n for n in place.dims(source) if n != 1)
    if axes == run:
        return place.reshaped(source, sizes), axes[0]
    if tuple(sorted(axes)) != axes:
        raise Refused(f"{y!r} is spread with its axes in another order")
    # axes between its own have size 1
    own = dict(zip(axes, sizes, strict=True))
    span = range(axes[0], axes[-1] + 1)
    small = place.reshaped(source, [own.get(a, 1) for a in span])
    wanted = place.dims(x)[axes[0] : axes[-1] + 1]
    return expanded(place, small, wanted), axes[0]


def expanded(place: Place, name: str, wanted: Sequence[Any], last: bool = False) -> str:
    """A value repeated along its axes of size 1 until it has this shape. Raises Refused for an open
    size that what is fed does not give.
    """
    own = place.dims(name)
    for n, m in zip(own, wanted, strict=True):
        if n not in (1, m):
            raise Refused(f"{name!r} has the size {n} where {m} is needed")
    if any(isinstance(m, str) and n != m for n, m in zip(own, wanted, strict=True)):
        return _repeated(place, name, wanted, last)
    times = [1 if n == m else m for n, m in zip(own, wanted, strict=True)]
    if all(t == 1 for t in times) and not last:
        return name
    return place.sized(place.moved(name, "expand", last, expand_times=times), wanted)


def _repeated(place: Place, name: str, wanted: Sequence[Any], last: bool) -> str:
    """A value repeated along open sizes: it is added to zeros of these sizes."""
    dtype = place.var(name).dtype
    kind = "int32" if dtype == "bool" else dtype
    if kind != dtype:
        sizes, codes = place.dims(name), (enum_of(dtype), enum_of(kind))
        name = place.add("cast", {"X": name}, in_dtype=codes[0], out_dtype=codes[1])
        name = place.sized(name, sizes)
    axes = [
        at
        for at, (n, m) in enumerate(zip(place.dims(name), wanted, strict=True))
        if n != m and isinstance(m, str)
    ]
    whole = [
        n if at in axes else m
        for at, (n, m) in enumerate(zip(place.dims(name), wanted, strict=True))
    ]
    found = expanded(place, name, whole)
    for at in axes:
        line = [m if i == at else 1 for i, m in enumerate(wanted)]
        whole[at] = wanted[at]
        done = last and kind == dtype and at == axes[-1]
        zeros = _full_like(place, line, 0.0, kind)
        found = place.add("elementwise_add", {"X": found, "Y": zeros}, last=done, axis=-1)
        found = place.sized(found, whole)
    if kind != dtype:
        found = place.add(
            "cast", {"X": found}, last=last, in_dtype=enum_of(kind), out_dtype=enum_of(dtype)
        )
    return place.sized(found, wanted)


@single("broadcast_in_dim")
def broadcast(place: Place) -> None:
    x, to = place.op.input("X")[0], place.op.attrs["broadcast_dimensions"]
    whole = place.dims(place.out.name)
    sizes: list[Any] = [1] * len(whole)
    for n, at in zip(place.dims(x) if to else (), to, strict=True):
        sizes[at] = n
    if tuple(sizes) == whole:
        place.reshaped(x, sizes, last=True)
        return
    expanded(place, place.reshaped(x, sizes), whole, last=True)


@single("tile")
def tile(place: Place) -> None:
    (x,), reps = place.op.input("X"), place.op.attrs["reps"]
    wanted = [n if str(r) == "1" else r for n, r in zip(place.dims(x), reps, strict=True)]
    if any(not str(n).isdigit() for n in reps) and list(map(str, wanted)) == list(
        map(str, place.dims(place.out.name))
    ):
        expanded(place, x, place.dims(place.out.name), last=True)
        return
    place.moved(x, "expand", True, expand_times=_ints(place, "reps"))


def _ints(place: Place, name: str) -> list[int]:
    value = place.op.attrs.get(name, ())
    if any(isinstance(n, str) for n in value):
        raise Refused(f"its {name} are open: {', '.join(map(str, value))}")
    return list(value)


_SHAPED = frozenset({"jax.reshape", "jax.squeeze", "jax.expand_dims"})


@single("reshape", "squeeze", "expand_dims")
def reshape(place: Place) -> None:
    if place.op.attrs.get("dimensions") and place.op.type == "jax.reshape":
        raise Refused("it reads the axes in another order")
    source = place.op.input("X")[0]
    while (op := place.source.makers.get(source)) is not None and op.type in _SHAPED:
        source = op.input("X")[0]
        if place.dims(source) == place.dims(place.out.name):  # there and back
            place.add("assign", {"X": source}, last=True)
            return
    place.reshaped(place.op.input("X")[0], place.dims(place.out.name), last=True)


@single("transpose")
def transpose(place: Place) -> None:
    place.moved(
        place.op.input("X")[0], "transpose2", True, axis=list(place.op.attrs["permutation"])
    )


@single("concatenate")
def concat(place: Place) -> None:
    place.add("concat", {"X": place.op.input("X")}, last=True, axis=place.op.attrs["dimension"])


@single("slice")
def slices(place: Place) -> None:
    x, attrs = place.op.input("X")[0], place.op.attrs
    sizes, strides = place.dims(x), attrs.get("strides") or (1,) * len(place.dims(x))
    cuts = []
    for at, (low, high, stride) in enumerate(
        zip(attrs["start_indices"], attrs["limit_indices"], strides, strict=True)
    ):
        if str(low) == "0" and str(high) == str(sizes[at]) and stride == 1:
            continue
        first, last = (_counted_from_an_end(n, sizes[at]) for n in (low, high))
        cuts.append((at, first, last, stride))
    if not cuts:
        place.add("assign", {"X": x}, last=True)
        return
    axes, starts, ends, steps = map(list, zip(*cuts, strict=True))
    held = {"axes": axes, "starts": starts, "ends": ends, "infer_flags": [1] * len(axes)}
    if all(s == 1 for s in steps):
        place.add("slice", {"Input": x}, last=True, **held)
    else:
        place.add("strided_slice", {"Input": x}, last=True, strides=steps, **held)


def _counted_from_an_end(at: int | str, size: int | str) -> int:
    """A place along an axis as Fluid's slices take it: a number, or how far it is from an open end."""
    known = apart(at, 0)
    if known is not None:
        return known
    less = apart(at, size)
    if less is None or less > 0:
        raise Refused(f"it cuts at {at} an axis of the size {size}")
    return less or _END


@single("pad")
def pad(place: Place) -> None:
    attrs, value = place.op.attrs, place.literal(place.op, "Value")
    value = place.op.attrs.get("value", value)
    low, high = _ints(place, "low"), _ints(place, "high")
    if any(attrs["interior"]) or min([*low, *high]) < 0 or value is None:
        raise Refused("it pads between cells, takes cells away, or pads with a computed value")
    flat = [n for pair in zip(low, high, strict=True) for n in pair]
    place.add(
        "pad", {"X": place.op.input("X")[0]}, last=True, paddings=flat, pad_value=float(value)
    )


_REDUCTIONS = {"reduce_sum": "reduce_sum", "reduce_max": "reduce_max", "reduce_min": "reduce_min",
               "reduce_prod": "reduce_prod", "reduce_and": "reduce_all", "reduce_or": "reduce_any"}  # fmt: skip


@single(*_REDUCTIONS)
def reduction(place: Place) -> None:
    x, axes = place.op.input("X")[0], list(place.op.attrs["axes"])
    if not axes:
        place.add("assign", {"X": x}, last=True)
        return
    place.finish(reduced(place, _REDUCTIONS[place.op.type[4:]], x, axes))


def reduced(place: Place, kind: str, x: str, axes: Sequence[int]) -> str:
    """A reduction that removes axes. Paddle 1.8.5 reduces correctly only up to four dimensions, so
    adjacent axes of larger arrays are merged.
    """
    dims = place.dims(x)
    if len(axes) == len(dims):
        return place.add(kind, {"X": x}, dim=list(axes), reduce_all=True)
    if len(dims) <= 4:
        return place.add(kind, {"X": x}, dim=list(axes))
    joined: list[tuple[bool, Any]] = []
    for at, n in enumerate(dims):
        gone = at in axes
        if joined and joined[-1][0] == gone:
            joined[-1] = gone, _product([joined[-1][1], n])
        else:
            joined.append((gone, n))
    if len(joined) > 4:
        raise Refused("it reduces axes apart from each other, of more than four")
    small = place.reshaped(x, [n for _, n in joined])
    found = place.add(kind, {"X": small}, dim=[i for i, (gone, _) in enumerate(joined) if gone])
    return place.reshaped(found, [n for at, n in enumerate(dims) if at not in axes])


@single("argmax", "argmin")
def argument(place: Place) -> None:
    kind = "arg_max" if place.op.type == "jax.argmax" else "arg_min"
    found = place.add(kind, {"X": place.op.input("X")[0]}, axis=place.op.attrs["axis"])
    _cast_to_out(place, found)


def _cast_to_out(place: Place, found: str) -> None:
    if place.var(found).dtype == place.out.dtype:
        place.finish(found)
    else:
        kinds = (enum_of(place.var(found).dtype), enum_of(place.out.dtype))
        place.add("cast", {"X": found}, last=True, in_dtype=kinds[0], out_dtype=kinds[1])


@single("cumsum")
def cumsum(place: Place) -> None:
    attrs = place.op.attrs
    place.add("cumsum", {"X": place.op.input("X")[0]}, last=True, axis=attrs["axis"], reverse=attrs.get("reverse", False))  # fmt: skip


@single("full")
def full(place: Place) -> None:
    value, shape = place.op.attrs["value"], place.op.attrs["shape"] or (1,)
    if any(isinstance(n, str) and not n.isdigit() for n in shape):
        _full_like(
            place, place.dims(place.out.name), float(value), place.op.attrs["dtype"], last=True
        )
        return
    shape = [int(n) for n in shape]
    place.add("fill_constant", {}, last=True, shape=shape, value=float(value), dtype=enum_of(place.op.attrs["dtype"]))  # fmt: skip


def _full_like(
    place: Place, sizes: Sequence[Any], value: float, dtype: Any, last: bool = False
) -> str:
    """A number repeated. Raises Refused for a size that what is fed does not give."""
    unknown = [at for at, n in enumerate(sizes) if not isinstance(n, int)]
    if len(unknown) > 1:
        one = [n if at == unknown[0] or isinstance(n, int) else 1 for at, n in enumerate(sizes)]
        return expanded(place, _full_like(place, one, value, dtype), sizes, last)
    shape = [-1 if at in unknown else n for at, n in enumerate(sizes)]
    held = {"shape": shape, "value": value, "dtype": enum_of(dtype)}
    (out,) = unknown
    for name, axis, text in place.fed:
        if text == sizes[out]:
            made = place.add(
                "fill_constant_batch_size_like", {"Input": name}, last=last, **held,
                input_dim_idx=axis, output_dim_idx=out,
            )  # fmt: skip
            return place.sized(made, sizes)
    each = [place.size(n) if at == out else number(n, place.add).name for at, n in enumerate(sizes)]
    return place.sized(
        place.add("fill_constant", {"ShapeTensorList": each}, last=last, **held), sizes
    )


@single("iota")
def iota(place: Place) -> None:
    """0, 1, 2, ... along an axis of an open size: ones before each place, added up."""
    sizes, at, dtype = place.dims(place.out.name), place.op.attrs["dimension"], place.out.dtype
    if all(isinstance(n, int) for n in sizes):
        raise Refused("its numbers are constants")
    line = [n if i == at else 1 for i, n in enumerate(sizes)]
    if isinstance(sizes[at], int):
        count = np.arange(sizes[at], dtype=numpy_dtype(dtype))
        place.finish(expanded(place, _assigned(place, count.reshape(line)), sizes))
        return
    ones = _full_like(place, line, 1.0, dtype)
    found = place.sized(place.add("cumsum", {"X": ones}, axis=at, exclusive=True), line)
    place.finish(expanded(place, found, sizes))


@single("constant")
def constant(place: Place) -> None:
    value = place.source.value(place.out.name)
    if value is None:
        raise Refused("it is not known before a run")
    _assigned(place, value.reshape(place.shape(place.out.name)), last=True)


def _assigned(place: Place, value: np.ndarray, last: bool = False) -> str:
    kind = value.dtype.name
    if kind not in HELD or value.size > KNOWN:
        raise Refused(f"assign_value holds small arrays of {', '.join(HELD)}")
    attr = {"float32": "fp32_values"}.get(kind, f"{kind}_values")
    held = {attr: value.ravel().tolist(), "dtype": enum_of(kind)}
    return place.add("assign_value", {}, last=last, shape=list(value.shape), **held)


@single("clamp")
def clamp(place: Place) -> None:
    low, high = place.literal(place.op, "Min"), place.literal(place.op, "Max")
    if low is None or high is None:
        raise Refused("its bounds are computed")
    place.add("clip", {"X": place.op.input("X")[0]}, last=True, min=float(low), max=float(high))


@single("select_n")
def select(place: Place) -> None:
    which, cases = place.op.input("Which")[0], place.op.input("Cases")
    known = place.scalar(which)
    if known is not None and 0 <= known < len(cases):
        place.add("assign", {"X": cases[int(known)]}, last=True)
        return
    whole = place.dims(cases[0])
    if place.var(which).dtype == "bool" and place.dims(which) != whole:
        one = place.reshaped(which, [1] * len(whole))
        which = expanded(place, one, whole)
    if len(cases) != 2 or place.var(which).dtype != "bool" or place.dims(which) != place.dims(cases[0]):  # fmt: skip
        raise Refused("it selects among more than two arrays, or by a number")
    if place.out.dtype == "bool":  # Paddle's `where` takes none
        first = place.add("logical_and", {"X": which, "Y": cases[1]})
        other = place.add("logical_not", {"X": which})
        other = place.add("logical_and", {"X": other, "Y": cases[0]})
        place.add("logical_or", {"X": first, "Y": other}, last=True)
        return
    place.add("where", {"Condition": which, "X": cases[1], "Y": cases[0]}, last=True)


@single("top_k")
def top_k(place: Place) -> None:
    x, k = place.op.input("X")[0], place.op.attrs["k"]
    if place.op.attrs.get("axis", -1) not in (-1, len(place.shape(x)) - 1) or not isinstance(
        k, int
    ):
        raise Refused(
            "it looks for the largest along another axis than the last, or an open number"
        )
    out, at = place.op.output("Out")[0], place.op.output("Indices")[0]
    values = out if out in place.needed else place.beside(out)
    found = place.beside(at, "int64")
    place.append("top_k", {"X": x}, {"Out": values, "Indices": found}, k=k)
    if at in place.needed:
        types = {"in_dtype": enum_of("int64"), "out_dtype": enum_of("int32")}
        place.append("cast", {"X": found}, {"Out": at}, **types)


@single("split")
def split(place: Place) -> None:
    sizes = _ints(place, "sizes")
    outs = [n if n in place.needed else place.beside(n) for n in place.op.output("Out")]
    x, axis = place.op.input("X")[0], place.op.attrs["axis"]
    place.append("split", {"X": x}, {"Out": outs}, sections=sizes, num=0, axis=axis)


@single("rev")
def reverse(place: Place) -> None:
    place.moved(place.op.input("X")[0], "reverse", True, axis=_ints(place, "dimensions"))


@single("dot_general")
def dot_general(place: Place) -> None:
    attrs, (x,), (y,) = place.op.attrs, place.op.input("Lhs"), place.op.input("Rhs")
    if attrs.get("preferred_element_type"):
        raise Refused("it accumulates in another type")
    xc, yc = list(attrs.get("lhs_contract", ())), list(attrs.get("rhs_contract", ()))
    xb, yb = list(attrs.get("lhs_batch", ())), list(attrs.get("rhs_batch", ()))
    xr, yr = len(place.shape(x)), len(place.shape(y))
    if not xb:
        free, wide = [a for a in range(xr) if a not in xc], [a for a in range(yr) if a not in yc]
        x = _transposed_to(place, x, [*free, *xc])
        y = _transposed_to(place, y, [*yc, *wide])
        if xc and free and wide:
            place.add(
                "mul", {"X": x, "Y": y}, last=True, x_num_col_dims=len(free), y_num_col_dims=len(yc)
            )
            return
        # missing axes become axes of size 1
        x = place.reshaped(
            x, [*((1,) if not free else ()), *place.dims(x), *((1,) if not xc else ())]
        )
        y = place.reshaped(
            y, [*((1,) if not yc else ()), *place.dims(y), *((1,) if not wide else ())]
        )
        rows, columns = len(free) or 1, len(yc) or 1
        found = place.add("mul", {"X": x, "Y": y}, x_num_col_dims=rows, y_num_col_dims=columns)
        found = place.sized(found, [*place.dims(x)[:rows], *place.dims(y)[columns:]])
        place.reshaped(found, place.dims(place.out.name), last=True)
        return
    x = _matrices(place, x, xb, xc, contract_last=True)
    y = _matrices(place, y, yb, yc, contract_last=False)
    found = place.add("matmul", {"X": x, "Y": y})
    found = place.sized(found, [*place.dims(x)[:-1], place.dims(y)[-1]])
    if place.dims(found) == place.dims(place.out.name):
        place.finish(found)
    else:
        place.reshaped(found, place.dims(place.out.name), last=True)


def _transposed_to(place: Place, name: str, order: Sequence[int]) -> str:
    if list(order) == list(range(len(order))):
        return name
    dims = place.dims(name)
    found = place.moved(name, "transpose2", axis=list(order))
    return place.sized(found, [dims[a] for a in order])


def _matrices(
    place: Place, name: str, batch: list[int], contract: list[int], contract_last: bool
) -> str:
    """An operand as matrices: its batch axes, and one axis each for the free and the contracted
    axes.
    """
    rank = len(place.shape(name))
    free = [a for a in range(rank) if a not in batch and a not in contract]
    order = [*batch, *free, *contract] if contract_last else [*batch, *contract, *free]
    dims = place.dims(name)
    found = _transposed_to(place, name, order)
    if len(free) == len(contract) == 1:
        return found

    pair = [_product([dims[a] for a in axes]) for axes in (free, contract)]
    return place.reshaped(
        found, [*(dims[a] for a in batch), *(pair if contract_last else pair[::-1])]
    )


@single("conv_general_dilated")
def conv(place: Place) -> None:
    attrs, (x,), (w,) = place.op.attrs, place.op.input("Lhs"), place.op.input("Rhs")
    operands, _, out = attrs["spec"].partition("->")
    lhs, rhs = operands.split(",")
    if (
        attrs.get("batch_group_count", 1) != 1
        or attrs.get("preferred_element_type")
        or len(lhs) > 5
    ):
        raise Refused("it groups batches, accumulates in another type, or has many spatial axes")
    spatial = [c for c in lhs if c not in "NC"]
    padding, groups = _ints(place, "padding"), attrs.get("feature_group_count", 1)
    strides, dilations = list(attrs["window_strides"]), list(attrs.get("rhs_dilation") or [1] * len(spatial))  # fmt: skip
    layout = "NHWC" if lhs[-1] == "C" and out == lhs else "NCHW"
    wanted = "N" + "".join(spatial) + "C" if layout == "NHWC" else "NC" + "".join(spatial)
    x = _transposed_to(place, x, [lhs.index(c) for c in wanted])
    dilated = list(attrs.get("lhs_dilation") or ())
    ordered = "IO" if dilated else "OI"
    w = _transposed_to(place, w, [rhs.index(c) for c in ordered + "".join(spatial)])
    if len(spatial) == 1:  # as an image of height 1
        x, w = _with_height(place, x, 1 if layout == "NHWC" else 2), _with_height(place, w, 2)
        strides, dilations, padding = [1, *strides], [1, *dilations], [0, 0, *padding]
        dilated = [1, *dilated] if dilated else dilated
    kind = "conv2d"
    if len(spatial) == 3:
        kind = "conv3d"
        # Paddle's transposed convolution supports only the formats of images
        layout = layout if dilated else {"NHWC": "NDHWC", "NCHW": "NCDHW"}[layout]
    held = {"dilations": dilations, "groups": groups, "data_format": layout}
    if dilated:
        if any(n != 1 for n in strides):
            raise Refused("its input is dilated, and it strides besides")
        found = _transposed(place, kind, x, w, padding, dilated, held)
    else:
        found = place.add(
            kind, {"Input": x, "Filter": w}, "Output", strides=strides, paddings=padding, **held
        )
    if len(spatial) == 1:
        at = 1 if layout == "NHWC" else 2
        found = place.reshaped(found, [*place.dims(found)[:at], *place.dims(found)[at + 1 :]])
    found = _transposed_to(place, found, [wanted.index(c) for c in out])
    place.finish(found)


def _with_height(place: Place, name: str, at: int) -> str:
    sizes = place.dims(name)
    return place.reshaped(name, [*sizes[:at], 1, *sizes[at:]])


def _transposed(
    place: Place, kind: str, x: str, w: str, padding: Sequence[int], strides: Sequence[int], held: dict[str, Any]
) -> str:  # fmt: skip
    """A convolution with a dilated input: Paddle's transposed one, with the kernel reversed; with
    groups, Paddle's kernel has the inputs of all and the outputs of one.
    """
    size, groups, rank = place.dims(w), held["groups"], len(place.dims(w)) - 2
    reach = [(n - 1) * d for n, d in zip(size[2:], held["dilations"], strict=True)]
    paddings = [reach[i // 2] - n for i, n in enumerate(padding)]
    w = place.moved(w, "reverse", axis=list(range(2, rank + 2)))
    if groups != 1:
        w = place.reshaped(w, [size[0], groups, size[1] // groups, *size[2:]])
        w = _transposed_to(place, w, [1, 0, *range(2, rank + 3)])
        w = place.reshaped(w, [size[0] * groups, size[1] // groups, *size[2:]])
    found = place.add(
        f"{kind}_transpose", {"Input": x, "Filter": w}, "Output", strides=list(strides),
        paddings=[max(n, 0) for n in paddings], **held,
    )  # fmt: skip
    beyond = [max(-n, 0) for n in paddings]  # if no window meets the input
    if any(beyond):
        around = [0, 0, 0, 0, *beyond] if held["data_format"][1] == "C" else [0, 0, *beyond, 0, 0]
        found = place.add("pad", {"X": found}, paddings=around, pad_value=0.0)
    return found


@single("gather")
def gather(place: Place) -> None:
    """A part of an array, or entries along one axis, at known or computed indices."""
    attrs, (x,), (index,) = place.op.attrs, place.op.input("X"), place.op.input("Indices")
    axes, sizes = tuple(attrs.get("collapsed_slice_dims", ())), attrs["slice_sizes"]
    dims = place.dims(x)
    if len(place.shape(index)) == 1 and not attrs.get("operand_batching_dims"):
        starts: list[str | None] = ["0"] * len(dims)
        values = place.source.value(place.spread(index)[0])
        for i, axis in enumerate(attrs["start_index_map"]):
            starts[axis] = (
                str(values.ravel()[i]) if values is not None else known_size(place, index)
            )
        parts = [int(n) if str(n).isdigit() else n for n in sizes]
        found = _part(place, x, starts, parts)
        place.finish(place.reshaped(found, place.dims(place.out.name)))
        return
    other = "it takes other parts of an array than entries along one axis"
    if len(axes) != 1 or tuple(attrs.get("start_index_map", ())) != axes:
        raise Refused(other)
    (at,) = axes
    rest = [str(n) for n in (*dims[:at], 1, *dims[at + 1 :])]
    if list(map(str, sizes)) != rest or attrs.get("operand_batching_dims"):
        raise Refused(other)
    value = place.source.value(place.spread(index)[0])
    offsets = [a for a in range(len(dims)) if a != at]
    if value is not None:
        rows, size = value.ravel(), dims[at] if isinstance(dims[at], int) else 1
        if rows.min(initial=0) < 0 or rows.max(initial=0) >= size:
            raise Refused("its indices go beyond the array")
    if value is None or list(attrs["offset_dims"]) != offsets:
        _rows_of(place, x, index, at)
        return
    kind = enum_of("int64")
    ids = place.add("assign_value", {}, int64_values=rows.tolist(), shape=[rows.size], dtype=kind)
    order = [at, *offsets]
    found = place.add("gather", {"X": _transposed_to(place, x, order), "Index": ids})
    place.finish(_transposed_to(place, found, [order.index(a) for a in range(len(dims))]))


def _rows_of(place: Place, x: str, index: str, at: int) -> None:
    """Entries along an axis by computed indices: rows of the array with that axis first."""
    out, offsets = place.dims(place.out.name), list(place.op.attrs.get("offset_dims", ()))
    if not place.shape(place.op.input("X")[0])[at:]:
        out = ()
    batch = [a for a in range(len(out)) if a not in offsets]
    dims = place.dims(x)
    index = inside(place, counted(place, place.spread(index)[0], dims[at]), dims[at])
    many = [out[a] for a in batch]
    flat = _product(many)
    x = _transposed_to(place, x, [at, *(a for a in range(len(dims)) if a != at)])
    found = place.add("gather", {"X": x, "Index": place.reshaped(index, [flat])})
    found = place.sized(found, [flat, *place.dims(x)[1:]])
    found = place.reshaped(found, [*many, *place.dims(x)[1:]] or (1,))
    axes = [*batch, *offsets]
    place.finish(_transposed_to(place, found, [axes.index(a) for a in range(len(axes))]))


def _product(sizes: Sequence[Any]) -> Any:
    """The number of elements of these sizes; the text of one if one is open."""
    if all(isinstance(n, int) for n in sizes):
        return math.prod(sizes)
    return "*".join(n if n.isidentifier() else f"({n})" for n in map(str, sizes))


def counted(place: Place, index: str, size: int | str) -> str:
    """An index counted from the beginning: JAX counts negative ones from the end, Fluid does not
    support them. If indices are clipped, none is refused: then negative ones are counted first.
    """
    op = place.source.makers.get(index)
    if op is None or op.type != "jax.select_n" or place.op.attrs.get("mode") == "CLIP":
        return index
    less = place.maker(op.input("Which")[0], "lt")
    i, beyond = op.input("Cases")
    added = place.maker(beyond, "add")
    if size_beside(place, added) != (i, str(size)) or number_beside(place, less) != (i, 0):
        raise Refused("its indices are selected")
    return place.spread(i)[0]


def inside(place: Place, index: str, size: int | str) -> str:
    """An index as the gather's mode has it: "CLIP" takes the nearest entry of one beyond the array.
    By any other mode Fluid refuses such an index.
    """
    fill = place.op.attrs.get("fill")
    if fill is not None and not math.isnan(fill):
        raise Refused(f"an entry beyond the array is {fill}, where Fluid has an error")
    if place.op.attrs["mode"] != "CLIP":
        return index
    if isinstance(size, str):
        raise Refused("its indices are clipped to an open size")
    dtype, sizes = enum_of(place.var(index).dtype), place.dims(index)
    for kind, bound in (("elementwise_max", 0.0), ("elementwise_min", size - 1.0)):
        number = place.add("fill_constant", {}, shape=[1], value=bound, dtype=dtype)
        index = place.sized(place.add(kind, {"X": index, "Y": number}), sizes)
    return index


def as_int64(place: Place, name: str) -> str:
    """Integers in the dtype of Fluid's ids."""
    kind = place.var(name).dtype
    if kind == "int64":
        return name
    found = place.add("cast", {"X": name}, in_dtype=enum_of(kind), out_dtype=enum_of("int64"))
    return place.sized(found, place.dims(name))


def number_beside(place: Place, op: OpDesc) -> tuple[str, float]:
    """The array and the number of a binary op."""
    for slot, other in (("X", "Y"), ("Y", "X")):
        n = place.literal(op, slot)
        if n is not None and op.input(other):
            return op.input(other)[0], n
    raise Refused("neither operand is a number")


def size_beside(place: Place, op: OpDesc) -> tuple[str, str]:
    """The array and the number or open size of a binary op."""
    for slot, other in (("X", "Y"), ("Y", "X")):
        size = known_size(place, *op.input(slot)) if op.input(slot) else op.attrs.get(slot.lower())
        if size is not None and op.input(other):
            return op.input(other)[0], str(size)
    raise Refused("neither operand is a number or a size")


def known_size(place: Place, name: str) -> str | None:
    """A whole number that depends on open sizes alone, as the text of a size."""
    name = place.spread(name)[0]
    number, op = place.scalar(name), place.source.makers.get(name)
    if number is not None or op is None:
        return None if number is None else str(int(number))
    if op.type == "jax.dim_as_value":
        return str(op.attrs["dim"])
    if op.type == "jax.convert_element_type":
        return known_size(place, op.input("X")[0]) if "int" in str(place.var(name).dtype) else None
    if op.type == "jax.select_n":
        which = place.scalar(op.input("Which")[0])
        return None if which is None else known_size(place, op.input("Cases")[int(which)])
    if op.type in _SIZES:
        sides = [
            known_size(place, *op.input(slot)) if op.input(slot) else op.attrs.get(slot.lower())
            for slot in ("X", "Y")
        ]
        return None if None in sides else f"({sides[0]}) {_SIZES[op.type]} ({sides[1]})"
    return None


_SIZES = {"jax.add": "+", "jax.sub": "-", "jax.mul": "*"}


@single("dynamic_slice")
def dynamic_slice(place: Place) -> None:
    """A part of an array that begins at places known before a run, up to open sizes."""
    starts = [known_size(place, name) for name in place.op.input("Starts")]
    place.finish(_part(place, place.op.input("X")[0], starts, place.dims(place.out.name)))


def _part(place: Place, x: str, starts: Sequence[str | None], parts: Sequence[Any]) -> str:
    """The part of an array that begins at these places and has these sizes."""
    sizes, cuts = place.dims(x), []
    for at, (start, part) in enumerate(zip(starts, parts, strict=True)):
        if sizes[at] == part:
            continue
        if start is None:
            raise Refused("it begins where a computed value says")
        end = f"{start} + ({part})"
        less = 0 if apart(start, 0) == 0 else apart(end, sizes[at])
        if less is None or less > 0:
            raise Refused(
                f"it takes {part} entries from {start} of an axis of the size {sizes[at]}"
            )
        cuts.append((at, *(_counted_from_an_end(n, sizes[at]) for n in (start, end))))
    if not cuts:
        return x
    axes, lows, highs = map(list, zip(*cuts, strict=True))
    held: dict[str, Any] = {"axes": axes, "starts": lows, "ends": highs}
    held["infer_flags"] = [1] * len(axes)
    return place.sized(place.add("slice", {"Input": x}, **held), parts)


@single("reduce_window_max")
def max_pool(place: Place) -> None:
    pool(place, place.op, "max", last=True)


@single("reduce_window_min")
def min_pool(place: Place) -> None:
    below = place.add("scale", {"X": place.op.input("X")[0]}, scale=-1.0)
    found = pool(place, place.op, "max", of=below)
    place.add("scale", {"X": found}, last=True, scale=-1.0)


def pool(
    place: Place, op: OpDesc, kind: str, last: bool = False, of: str | None = None, **attrs: Any
) -> str:
    """Windows over the two or three spatial axes of an image; over one axis, as for an image of
    height 1. of: the value, default the op's own.
    """
    given, x = op.attrs, of or op.input("X")[0]
    if given.get("base_dilation") or given.get("window_dilation"):
        raise Refused("its windows are dilated")
    if any(isinstance(n, str) for n in (*given["window_dimensions"], *given["padding"])):
        raise Refused("its windows follow an open size")
    window, strides = given["window_dimensions"], given["window_strides"]
    moved = [a for a, n in enumerate(window) if n != 1 or strides[a] != 1]
    rank, pads = len(window), given["padding"]
    if rank == 3 and len(moved) == 1 and moved[0]:
        # with an axis of height before it
        held = {
            name: (*given[name][: moved[0]], 1, *given[name][moved[0] :])
            for name in ("window_dimensions", "window_strides")
        }
        padding = (*pads[: 2 * moved[0]], 0, 0, *pads[2 * moved[0] :])
        high = replace(op, attrs=given.set(**held, padding=padding))
        found = pool(place, high, kind, of=_with_height(place, x, moved[0]), **attrs)
        sizes = place.dims(found)
        return place.reshaped(found, [*sizes[: moved[0]], *sizes[moved[0] + 1 :]], last)
    spatial = 3 if rank == 5 and len(moved) == 3 else 2
    if rank != 4 and len(moved) == 2 and moved[1] == moved[0] + 1:
        return _pool_of_many(place, op, kind, moved[0], last, x, **attrs)
    firsts = [f for f in (1, 2) if rank == spatial + 2 and set(moved) <= set(range(f, f + spatial))]
    if not firsts:
        raise Refused("its windows go over other axes than the two or three of an image")
    first = firsts[0]
    layout = ("N", "DHW"[-spatial:], "C") if first == 1 else ("N", "C", "DHW"[-spatial:])
    return place.add(
        f"pool{spatial}d", {"X": x}, last=last, pooling_type=kind, ksize=list(window[first : first + spatial]),
        strides=list(strides[first : first + spatial]), paddings=list(pads[2 * first : 2 * (first + spatial)]),
        data_format="".join(layout), **attrs,
    )  # fmt: skip


def _pool_of_many(
    place: Place, op: OpDesc, kind: str, first: int, last: bool, x: str, **attrs: Any
) -> str:
    """Windows over two adjacent axes of an array that is not an image: axes before them are
    samples, axes after them channels.
    """
    given, dims = op.attrs, place.dims(x)
    pads = given["padding"]
    if any(pads[: 2 * first]) or any(pads[2 * first + 4 :]):
        raise Refused("it pads between samples or channels")
    lead, tail = dims[:first], dims[first + 2 :]
    if not all(isinstance(n, int) for n in tail):
        raise Refused("its channels are open")
    count = math.prod(lead) if all(isinstance(n, int) for n in lead) else "samples"
    image = [count, *dims[first : first + 2], math.prod(tail)]
    found = place.add(
        "pool2d", {"X": place.reshaped(x, image)}, pooling_type=kind,
        ksize=list(given["window_dimensions"][first : first + 2]),
        strides=list(given["window_strides"][first : first + 2]), paddings=list(pads[2 * first : 2 * first + 4]),
        data_format="NHWC", **attrs,
    )  # fmt: skip
    return place.reshaped(found, [*lead, *place.shape(found)[1:3], *tail], last)


@single("reduce_window_sum")
def sum_pool(place: Place) -> None:
    window = math.prod(place.op.attrs["window_dimensions"])
    found = pool(place, place.op, "avg", exclusive=False)
    place.add("scale", {"X": found}, last=True, scale=float(window))


@single("custom_call", "call", "checkpoint")
def function(place: Place) -> None:
    raise Refused("it is a function of its own: it is read in place before")
