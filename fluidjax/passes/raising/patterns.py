"""Several ops of JAX's that are one of Fluid's: found from the last of them backwards, whatever
the order of commutative operands, and whatever copies and repetitions stand between.

A pattern only proposes: each place is tried on random inputs before it is taken (trial.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ...base.dtypes import enum_of
from ...ir.desc import OpDesc
from ..match import Refused
from .place import Place
from .rules import _cast_to_out, pool, reduced

Build = Callable[[Place], None]
PATTERNS: dict[str, list[tuple[str, Build]]] = {}


def pattern(name: str, *roots: str) -> Callable[[Build], Build]:
    def keep(build: Build) -> Build:
        for root in roots:
            PATTERNS.setdefault(f"jax.{root}", []).append((name, build))
        return build

    return keep


def _sides(op: OpDesc) -> Iterator[tuple[str, str]]:
    """Both orders of the operands of a commutative op."""
    if op.input("X") and op.input("Y"):
        (x,), (y,) = op.input("X"), op.input("Y")
        yield x, y
        yield y, x


def _vector(place: Place, name: str, axis: int) -> str | None:
    """The vector of which a value is the repetition along all axes but one; None where it is none."""
    source, axes = place.spread(name)
    rank = len(place.shape(place.out.name))
    shape = place.shape(name)
    axes = tuple(a + rank - len(shape) for a in axes)
    return source if axes == (axis,) and len(place.shape(source)) == 1 else None


def _number_beside(place: Place, op: OpDesc) -> tuple[str, float]:
    """The array and the number of a binary op."""
    for slot, other in (("X", "Y"), ("Y", "X")):
        n = place.literal(op, slot)
        if n is not None and op.input(other):
            return op.input(other)[0], n
    raise Refused("neither operand is a number")


def _mean_of(place: Place, name: str) -> tuple[str, tuple[int, ...]]:
    """(x, axes) where a value is the mean of x over axes, however it is spread afterwards."""
    source, _ = place.spread(name)
    op = place.maker(source, "div", "mul")
    total, n = _number_beside(place, op)
    op_sum = place.maker(place.spread(total)[0], "reduce_sum")
    x, axes = op_sum.input("X")[0], tuple(op_sum.attrs["axes"])
    sizes = [place.dims(x)[a] for a in axes]
    if not all(isinstance(s, int) for s in sizes):
        raise Refused("it is a mean over an open size")
    count = math.prod(sizes)
    if n != count and not math.isclose(n * count, 1.0, rel_tol=1e-6):
        raise Refused("the sum is not divided by how many there are")
    return x, axes


@pattern("mean", "div", "mul")
def mean(place: Place) -> None:
    x, axes = _mean_of(place, place.out.name)
    if len(axes) == len(place.shape(x)):
        raise Refused("it is the mean of all, and Fluid's has the shape [1]")
    found = reduced(place, "reduce_mean", x, axes)
    place.finish(found) if place.dims(found) == place.dims(place.out.name) else place.reshaped(
        found, place.dims(place.out.name), last=True
    )


@pattern("average pool", "div", "mul")
def avg_pool(place: Place) -> None:
    total, n = _number_beside(place, place.op)
    op = place.maker(total, "reduce_window_sum")
    if n != math.prod(op.attrs["window_dimensions"]):
        raise Refused("the sum of a window is not divided by its size")
    pool(place, op, "avg", last=True, exclusive=False)


@pattern("softmax", "div")
def softmax(place: Place) -> None:
    (e,), (s,) = place.op.input("X") or ("",), place.op.input("Y") or ("",)
    if not e or not s:
        raise Refused("it divides by a number")
    exp = place.maker(e, "exp")
    total = place.maker(place.spread(s)[0], "reduce_sum")
    if place.through(total.input("X")[0]) != place.through(e):
        raise Refused("it does not divide by its own sum")
    x, axis = _shifted(place, exp.input("X")[0]), _only(total)
    place.add("softmax", {"X": x}, last=True, axis=axis)


def _shifted(place: Place, name: str) -> str:
    """x where a value is x less its greatest element, else the value itself."""
    try:
        op = place.maker(name, "sub")
        (x,), (m,) = op.input("X"), op.input("Y")
        source = place.spread(m)[0]
        for _ in range(3):
            maker = place.maker(source, "reduce_max", "max", "select_n")
            if maker.type == "jax.reduce_max":
                return x if place.through(maker.input("X")[0]) == place.through(x) else name
            inner = _number_beside(place, maker)[0] if maker.type == "jax.max" else maker.input("Cases")[-1]  # fmt: skip
            source = place.spread(inner)[0]
    except (Refused, ValueError):
        pass
    return name


def _only(op: OpDesc) -> int:
    axes = op.attrs["axes"]
    if len(axes) != 1:
        raise Refused("it goes over several axes")
    return int(axes[0])


@pattern("elu", "select_n")
def elu(place: Place) -> None:
    """x where it is positive, else alpha (exp(x) - 1), of which x may be made 0 where it is not
    used.
    """
    below, x = place.op.input("Cases")
    alpha = 1.0
    op = place.maker(below, "expm1", "mul")
    if op.type == "jax.mul":
        below, alpha = _number_beside(place, op)
        place.maker(below, "expm1")
    place.add("elu", {"X": x}, last=True, alpha=float(alpha))


@pattern("gelu", "mul", "div")
def gelu(place: Place) -> None:
    """x/2 (1 + erf(x / sqrt 2)), or by tanh as gelu is approximated: proposed where such a function
    of x is among the factors.
    """
    for at in _within(place, place.out.name, 4):
        if at.type in ("jax.erf", "jax.erfc"):
            inner = place.source.makers.get(place.through(at.input("X")[0]))
            x = _root(place, inner)
            place.add("gelu", {"X": x}, last=True, approximate=False)
            return
        if at.type == "jax.tanh":
            sums = [o for o in _within(place, at.input("X")[0], 4) if o.type == "jax.add"]
            for x in (n for o in sums for n in o.reads):
                cubes = _within(place, at.input("X")[0], 6)
                if any(o.type in ("jax.integer_pow", "jax.mul") and x in o.reads for o in cubes):
                    place.add("gelu", {"X": x}, last=True, approximate=True)
                    return
    raise Refused("neither erf nor tanh is among its factors")


def _within(place: Place, name: str, depth: int) -> Iterator[OpDesc]:
    op = place.source.makers.get(name)
    if op is None or depth == 0:
        return
    yield op
    for n in op.reads:
        yield from _within(place, n, depth - 1)


def _root(place: Place, op: OpDesc | None) -> str:
    """What a product with a number, or a negative, is made of."""
    for _ in range(4):
        if op is None:
            break
        if op.type == "jax.neg":
            name = op.input("X")[0]
        elif op.type in ("jax.mul", "jax.div"):
            name = _number_beside(place, op)[0]
        else:
            break
        below = place.source.makers.get(place.through(name))
        if below is None or below.type not in ("jax.neg", "jax.mul", "jax.div"):
            return name
        op = below
    raise Refused("what the erf is of is not found")


@pattern("normalisation", "add", "mul", "div")
def norm(place: Place) -> None:
    """(x - mean) * (rsqrt(var + eps) * scale) + bias, with any of scale and bias left out, or with a
    quotient by the root: a batch norm in a test where mean and variance follow from what persists, else a layer norm.
    """
    found = _normalised(place)
    if found.stored:
        _batch_norm(place, found)
    else:
        _layer_norm(place, found)


@dataclass(frozen=True)
class _Norm:
    """What a normalisation is made of. stored: whether its variance is a variable of the state."""

    x: str
    mean: str
    variance: str
    stored: bool
    epsilon: float
    scale: str | None
    bias: str | None
    axis: int


def _normalised(place: Place) -> _Norm:
    rank = len(place.shape(place.out.name))
    axis = rank - 1
    op, bias, scale = place.op, None, None
    body = place.out.name
    choices: list[int] = [rank - 1, 1] if rank > 2 else [rank - 1]
    if op.type == "jax.add":
        found = None
        for a, b in _sides(op):
            for c in choices:
                v = _vector(place, b, c)
                if v is not None:
                    found = a, v, c
                    break
            if found:
                break
        if found is None:
            raise Refused("no vector is added")
        body, bias, axis = found
        choices = [axis]
    factors = _factors(place, body)
    centred, inverse, rest = None, None, []
    for name in factors:
        maker = place.source.makers.get(place.through(place.spread(name)[0]))
        direct = place.source.makers.get(place.through(name))
        if maker is not None and maker.type in ("jax.rsqrt", "jax.sqrt") and inverse is None:
            inverse = maker
        elif direct is not None and direct.type == "jax.sub" and centred is None:
            centred = direct
        else:
            rest.append(name)
    if centred is None or inverse is None or len(rest) > 1 or not centred.input("Y") or not centred.input("X"):  # fmt: skip
        raise Refused("it is no (x - mean) * rsqrt(variance + epsilon)")
    if rest:
        for c in choices:
            scale = _vector(place, rest[0], c)
            if scale is not None:
                axis = c
                break
        if scale is None:
            raise Refused(f"{rest[0]!r} is no vector along one axis")
    added = place.maker(place.spread(inverse.input("X")[0])[0], "add")
    variance, eps = _number_beside(place, added)
    var_source, _ = place.spread(variance)
    (x,), (m,) = centred.input("X"), centred.input("Y")
    stored = place.source.stored(var_source)
    return _Norm(x, m, var_source, stored, eps, scale, bias, axis)


def _factors(place: Place, name: str, depth: int = 3) -> list[str]:
    """What a product is made of; a quotient by a root is a product with its inverse."""
    op = place.source.makers.get(place.through(name))
    if op is None or not (op.input("X") and op.input("Y")) or not depth:
        return [name]
    (x,), (y,) = op.input("X"), op.input("Y")
    if op.type == "jax.mul":
        return [*_factors(place, x, depth - 1), *_factors(place, y, depth - 1)]
    root = place.source.makers.get(place.through(place.spread(y)[0]))
    if op.type == "jax.div" and root is not None and root.type == "jax.sqrt":
        return [*_factors(place, x, depth - 1), y]
    return [name]


def _batch_norm(place: Place, norm: _Norm) -> None:
    rank = len(place.shape(norm.x))
    mean = _vector(place, norm.mean, norm.axis)
    if mean is None or not place.source.stored(mean):
        raise Refused("its mean and variance are not both stored")
    channels = place.shape(norm.variance)[0]

    def default(value: float) -> str:
        kind = enum_of(place.out.dtype)
        return place.add("fill_constant", {}, shape=[channels], value=value, dtype=kind)

    ins = {
        "X": norm.x,
        "Scale": norm.scale or default(1.0),
        "Bias": norm.bias or default(0.0),
        "Mean": mean,
        "Variance": norm.variance,
    }
    layout = "NHWC" if norm.axis == rank - 1 and rank > 2 else "NCHW"
    epsilon = float(norm.epsilon)
    place.add("batch_norm", ins, "Y", last=True, epsilon=epsilon, is_test=True, data_layout=layout)


def _layer_norm(place: Place, norm: _Norm) -> None:
    inner, axes = _mean_of(place, norm.mean)
    rank = len(place.shape(norm.x))
    if place.through(inner) != place.through(norm.x) or list(axes) != [rank - 1]:
        raise Refused("its mean is not that of the last axis")
    given = {"X": norm.x, "Scale": norm.scale, "Bias": norm.bias}
    ins = {slot: name for slot, name in given.items() if name}
    place.add(
        "layer_norm", ins, "Y", last=True, epsilon=float(norm.epsilon), begin_norm_axis=rank - 1
    )


@pattern("embedding", "gather")
def embedding(place: Place) -> None:
    """Whole rows of a table by index, with or without negative indices counted from the end."""
    attrs, (table,), (index,) = place.op.attrs, place.op.input("X"), place.op.input("Indices")
    rows, width = (*place.shape(table), 0, 0)[:2]
    starts = tuple(attrs.get("start_index_map", ()))
    if starts == (0, 1):  # as under jax.vmap: every row from its first column on
        parts = place.maker(index, "concatenate").input("X")
        if len(parts) == 2 and place.scalar(parts[1]) == 0:
            index, starts = parts[0], (0,)
    whole = (
        len(place.shape(table)) == 2
        and set(attrs.get("collapsed_slice_dims", ())) <= {0}
        and starts == (0,)
        and tuple(map(str, attrs["slice_sizes"])) == ("1", str(width))
        and not attrs.get("operand_batching_dims")
    )
    if not whole:
        raise Refused("it takes other parts of an array than rows of a table")
    if not place.source.vars[table].persistable:
        raise Refused("its table is computed")
    index = place.spread(index)[0]
    op = place.source.makers.get(index)
    if op is not None and op.type == "jax.select_n":
        index = _unwrapped(place, op, rows)
    out = place.dims(place.out.name)
    wanted = out[:-1] if attrs.get("collapsed_slice_dims") else out[:-2]
    if place.dims(index) != wanted:
        index = place.reshaped(index, wanted)
    if place.var(index).dtype != "int64":
        index = place.add("cast", {"X": index}, in_dtype=enum_of(place.var(index).dtype), out_dtype=enum_of("int64"))  # fmt: skip
    found = place.add("lookup_table_v2", {"W": table, "Ids": index}, padding_idx=-1)
    place.finish(found) if wanted == out[:-1] else place.reshaped(found, out, last=True)


def _unwrapped(place: Place, op: OpDesc, rows: int) -> str:
    """i where a value is i + rows for a negative i, else i: ids are not negative in Fluid."""
    less = place.maker(op.input("Which")[0], "lt")
    i, beyond = op.input("Cases")
    added = place.maker(beyond, "add")
    if _number_beside(place, added) != (i, rows) or _number_beside(place, less) != (i, 0):
        raise Refused("its indices are selected")
    return i


@pattern("one_hot", "convert_element_type")
def one_hot(place: Place) -> None:
    """Where an index equals the numbers along a last axis."""
    op = place.maker(place.op.input("X")[0], "eq")
    for a, b in _sides(op):
        numbers, axes = place.spread(b)
        value = place.source.value(numbers)
        index, own = place.spread(a)
        rank = len(place.shape(place.out.name))
        if value is None or axes != (rank - 1,) or own != tuple(range(rank - 1)):
            continue
        depth = value.size
        if list(value.ravel()) != list(range(depth)) or "int" not in str(place.var(index).dtype):
            continue
        index = place.reshaped(index, [*place.dims(place.out.name)[:-1]])
        if place.var(index).dtype != "int64":
            index = place.add("cast", {"X": index}, in_dtype=enum_of(place.var(index).dtype), out_dtype=enum_of("int64"))  # fmt: skip
        found = place.add("one_hot_v2", {"X": index}, depth=depth, dtype=enum_of("float32"), allow_out_of_range=True)  # fmt: skip
        _cast_to_out(place, found)
        return
    raise Refused("it compares no index with the numbers along its last axis")
