"""Groups of JAX's ops that form one of Fluid's: matched backwards from the last op, for any order
of commutative operands, and through copies and repetitions.

A pattern only proposes: each match is tried on random inputs before it is accepted (trial.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ...base.dtypes import enum_of
from ...ir import dims
from ...ir.desc import OpDesc
from ..match import Refused
from .place import Place
from .rules import _cast_to_out, as_int64, counted, inside, number_beside, pool, reduced

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
    """The vector that a value repeats along all axes but one; None if it does not."""
    source, axes = place.spread(name)
    rank = len(place.shape(place.out.name))
    shape = place.shape(name)
    axes = tuple(a + rank - len(shape) for a in axes)
    return source if axes == (axis,) and len(place.shape(source)) == 1 else None


def _mean_of(place: Place, name: str) -> tuple[str, tuple[int, ...]]:
    """(x, axes) if a value is the mean of x over axes, possibly broadcast afterwards."""
    source, _ = place.spread(name)
    op = place.maker(source, "div", "mul")
    count: Any
    if op.input("X") and op.input("Y") and op.type == "jax.div":
        total, count = op.input("X")[0], _open_count(place, op.input("Y")[0])
    else:
        total, count = number_beside(place, op)
    op_sum = place.maker(place.spread(total)[0], "reduce_sum")
    x, axes = op_sum.input("X")[0], tuple(op_sum.attrs["axes"])
    sizes = [place.dims(x)[a] for a in axes]
    if isinstance(count, str):
        names = {w for n in (count, *sizes) if isinstance(n, str) for w in dims.symbols(n)}
        known = {w: 7 + 4 * at for at, w in enumerate(sorted(names))}
        count, *sizes = (dims.value(str(n), known) for n in (count, *sizes))
    if not all(isinstance(s, int) for s in sizes):
        raise Refused("it is a mean over an open size")
    if count != math.prod(sizes) and not math.isclose(count * math.prod(sizes), 1.0, rel_tol=1e-6):
        raise Refused("the sum is not divided by how many there are")
    return x, axes


def _open_count(place: Place, name: str) -> str:
    """The size that equals a number."""
    op = place.maker(place.spread(name)[0], "convert_element_type", "dim_as_value")
    if op.type == "jax.convert_element_type":
        op = place.maker(op.input("X")[0], "dim_as_value")
    return str(op.attrs["dim"])


@pattern("mean", "div", "mul")
def mean(place: Place) -> None:
    x, axes = _mean_of(place, place.out.name)
    found = reduced(place, "reduce_mean", x, axes)
    place.finish(found) if place.dims(found) == place.dims(place.out.name) else place.reshaped(
        found, place.dims(place.out.name), last=True
    )


@pattern("average pool", "div", "mul")
def avg_pool(place: Place) -> None:
    total, n = number_beside(place, place.op)
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
    """x if a value is x minus its greatest element, else the value itself."""
    try:
        op = place.maker(name, "sub")
        (x,), (m,) = op.input("X"), op.input("Y")
        source = place.spread(m)[0]
        for _ in range(3):
            maker = place.maker(source, "reduce_max", "max", "select_n")
            if maker.type == "jax.reduce_max":
                return x if place.through(maker.input("X")[0]) == place.through(x) else name
            inner = number_beside(place, maker)[0] if maker.type == "jax.max" else maker.input("Cases")[-1]  # fmt: skip
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
    """elu: x where it is positive, else alpha (exp(x) - 1); its x may be replaced by 0 where it is
    not used.
    """
    below, x = place.op.input("Cases")
    alpha = 1.0
    op = place.maker(below, "expm1", "mul")
    if op.type == "jax.mul":
        below, alpha = number_beside(place, op)
        place.maker(below, "expm1")
    place.add("elu", {"X": x}, last=True, alpha=float(alpha))


@pattern("gelu", "mul", "div")
def gelu(place: Place) -> None:
    """gelu: x/2 (1 + erf(x / sqrt 2)), or its tanh approximation; proposed if such a function of x
    is among the factors.
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
    """The operands of a product with a number, or of a negation."""
    for _ in range(4):
        if op is None:
            break
        if op.type == "jax.neg":
            name = op.input("X")[0]
        elif op.type in ("jax.mul", "jax.div"):
            name = number_beside(place, op)[0]
        else:
            break
        below = place.source.makers.get(place.through(name))
        if below is None or below.type not in ("jax.neg", "jax.mul", "jax.div"):
            return name
        op = below
    raise Refused("what the erf is of is not found")


@dataclass(frozen=True)
class _Norm:
    """(x - mean) * (rsqrt(variance + epsilon) * scale) + bias, with any of scale and bias left out,
    or with a quotient by the root. stored: whether the variance depends only on persistable
    variables.
    """

    x: str
    mean: str
    variance: str
    stored: bool
    epsilon: float
    scale: str | None
    bias: str | None


def _normalised(place: Place) -> _Norm:
    op, bias, scale = place.op, None, None
    body = place.out.name
    if op.type == "jax.add":
        sides = [(a, b) for a, b in _sides(op) if _parameter(place, b)]
        if not sides:
            raise Refused("no vector is added")
        body, bias = sides[0]
    centred, inverse, rest = None, None, []
    for name in _factors(place, body):
        maker = place.source.makers.get(place.through(place.spread(name)[0]))
        direct = place.source.makers.get(place.through(name))
        if maker is not None and maker.type in ("jax.rsqrt", "jax.sqrt") and inverse is None:
            inverse = maker
        elif direct is not None and direct.type == "jax.sub" and centred is None:
            centred = direct
        else:
            rest.append(name)
    if centred is None or inverse is None or len(rest) > 1 or not centred.input("Y") or not centred.input("X"):  # fmt: skip
        raise Refused("it is not (x - mean) * rsqrt(variance + epsilon)")
    if rest:
        (scale,) = rest
        if not _parameter(place, scale):
            raise Refused(f"{scale!r} is not a vector along one axis")
    added = place.maker(place.spread(inverse.input("X")[0])[0], "add")
    variance, eps = number_beside(place, added)
    var_source, _ = place.spread(variance)
    (x,), (m,) = centred.input("X"), centred.input("Y")
    return _Norm(x, m, var_source, place.source.stored(var_source), float(eps), scale, bias)


def _parameter(place: Place, name: str) -> bool:
    """Whether a value is equal for all samples, but not for all elements."""
    axes, rank = _axes(place, name), len(place.shape(place.out.name))
    return bool(axes) and (rank == 1 or 0 not in axes)


def _axes(place: Place, name: str) -> tuple[int, ...]:
    """The axes of the output along which a value differs."""
    behind = len(place.shape(place.out.name)) - len(place.shape(name))
    return tuple(a + behind for a in place.spread(name)[1])


def _factors(place: Place, name: str, depth: int = 3) -> list[str]:
    """The factors of a product; a quotient by a root is a product with its inverse."""
    op = place.source.makers.get(place.through(name))
    if op is not None and op.type == "jax.reshape" and depth:  # groups become channels again
        found = _factors(place, op.input("X")[0], depth - 1)
        return found if len(found) == 2 else [name]
    if op is None or not (op.input("X") and op.input("Y")) or not depth:
        return [name]
    (x,), (y,) = op.input("X"), op.input("Y")
    if op.type == "jax.mul":
        return [*_factors(place, x, depth - 1), *_factors(place, y, depth - 1)]
    root = place.source.makers.get(place.through(place.spread(y)[0]))
    if op.type == "jax.div" and root is not None and root.type == "jax.sqrt":
        return [*_factors(place, x, depth - 1), y]
    return [name]


@pattern("batch norm", "add", "mul", "div")
def batch_norm(place: Place) -> None:
    """batch_norm in a test program: mean and variance depend only on persistable variables."""
    norm, rank = _normalised(place), len(place.shape(place.out.name))
    if not norm.stored or place.dims(norm.x) != place.dims(place.out.name):
        raise Refused("its mean and variance are not both stored")
    vectors = [n for n in (norm.scale, norm.bias, norm.mean) if n]
    choices = [rank - 1, 1] if rank > 2 else [rank - 1]
    axis = next((c for c in choices if all(_vector(place, n, c) for n in vectors)), None)
    mean = None if axis is None else _vector(place, norm.mean, axis)
    if axis is None or mean is None or not place.source.stored(mean):
        raise Refused("its mean and variance are not both stored")
    channels = place.shape(norm.variance)[0]
    ins = {
        "X": norm.x, **_scaled(place, norm, axis, channels), "Mean": mean, "Variance": norm.variance,
    }  # fmt: skip
    layout = "NHWC" if axis == rank - 1 and rank > 2 else "NCHW"
    place.add(
        "batch_norm", ins, "Y", last=True, epsilon=norm.epsilon, is_test=True, data_layout=layout
    )


def _scaled(place: Place, norm: _Norm, axis: int, channels: int) -> dict[str, str]:
    """Scale and Bias, ones and zeros by default."""
    found = {}
    for slot, name, value in (("Scale", norm.scale, 1.0), ("Bias", norm.bias, 0.0)):
        vector = _vector(place, name, axis) if name else None
        kind = enum_of(place.out.dtype)
        found[slot] = vector or place.add("fill_constant", {}, shape=[channels], value=value, dtype=kind)  # fmt: skip
    return found


@pattern("layer norm", "add", "mul", "div")
def layer_norm(place: Place) -> None:
    """layer_norm over the last axes; scale and bias have all of them."""
    norm, rank = _normalised(place), len(place.shape(place.out.name))
    inner, axes = _mean_of(place, norm.mean)
    begin = min(axes)
    if place.through(inner) != place.through(norm.x) or place.dims(norm.x) != place.dims(place.out.name):  # fmt: skip
        raise Refused("its mean is not of what it is taken from")
    if sorted(axes) != list(range(begin, rank)) or (begin == 0 and rank > 1):
        raise Refused("its mean is not that of the last axes")
    sizes = place.dims(norm.x)[begin:]
    if not all(isinstance(n, int) for n in sizes):
        raise Refused("it goes over an open size")
    ins = {"X": norm.x}
    for slot, name in (("Scale", norm.scale), ("Bias", norm.bias)):
        if name is None:
            continue
        if _axes(place, name) != tuple(a for a in range(begin, rank) if sizes[a - begin] != 1):
            raise Refused(f"{name!r} has other axes than those of the mean")
        ins[slot] = place.reshaped(place.spread(name)[0], [math.prod(sizes)])
    place.add("layer_norm", ins, "Y", last=True, epsilon=norm.epsilon, begin_norm_axis=begin)


def _grouped(place: Place, axis: int) -> None:
    """A norm over groups of channels of each sample; a group of one channel is an instance norm."""
    norm, rank = _normalised(place), len(place.shape(place.out.name))
    if norm.stored or rank < 3:
        raise Refused("its statistics are stored, or there are channels alone")
    total = _summed(place, norm.mean)
    # the summed value, and the one that it is subtracted from, are the input in some shape
    x, other = (
        _unshaped(place, n, place.dims(place.out.name)) for n in (norm.x, total.input("X")[0])
    )
    means = place.dims(total.output("Out")[0])
    if x != other or means[0] != place.dims(x)[0] or not all(isinstance(n, int) for n in means[1:]):
        raise Refused("its mean is not one for every group of a sample")
    channels, groups = place.shape(x)[axis], math.prod(means[1:])
    if channels < 1 or channels % groups:
        raise Refused(f"{groups} groups do not divide {channels} channels")
    ins = {"X": x, **_scaled(place, norm, axis, channels)}
    if groups == channels and axis == 1:
        place.add("instance_norm", ins, "Y", last=True, epsilon=norm.epsilon)
        return
    # Paddle's op takes images: other inputs become images of height 1
    sizes, layout = place.dims(x), "NCHW" if axis == 1 else "NHWC"
    spatial = sizes[2:] if axis == 1 else sizes[1:-1]
    if not all(isinstance(n, int) for n in spatial):
        raise Refused("its positions are open")
    if rank != 4:
        count = math.prod(spatial)
        image = (sizes[0], channels, 1, count) if axis == 1 else (sizes[0], 1, count, channels)
        ins["X"] = place.reshaped(x, image)
    found = place.add(
        "group_norm", ins, "Y", last=rank == 4, epsilon=norm.epsilon, groups=groups, data_layout=layout
    )  # fmt: skip
    if rank != 4:
        place.reshaped(place.sized(found, image), sizes, last=True)


@pattern("group norm", "add", "mul", "div")
def group_norm(place: Place) -> None:
    _grouped(place, len(place.shape(place.out.name)) - 1)


@pattern("group norm of channels first", "add", "mul", "div")
def group_norm_of_channels_first(place: Place) -> None:
    _grouped(place, 1)


_AROUND = (
    "broadcast_in_dim", "reshape", "expand_dims", "squeeze", "div", "mul", "reduce_sum",
)  # fmt: skip


def _summed(place: Place, name: str) -> OpDesc:
    """The sum of a mean, possibly broadcast and reshaped afterwards."""
    for _ in range(8):
        op = place.maker(name, *_AROUND)
        if op.type == "jax.reduce_sum":
            return op
        name = number_beside(place, op)[0] if op.type in ("jax.div", "jax.mul") else op.input("X")[0]  # fmt: skip
    raise Refused("its mean is not found")


def _unshaped(place: Place, name: str, sizes: tuple[object, ...]) -> str:
    """The value of this shape that a value reshapes."""
    name = place.through(name)
    while place.dims(name) != sizes:
        name = place.through(place.maker(name, "reshape").input("X")[0])
    return name


def _log_softmax_of(place: Place, name: str) -> str:
    """x if a value is the log_softmax of x along its last axis."""
    op = place.maker(name, "sub")
    if not op.input("X") or not op.input("Y"):
        raise Refused("it is not a log_softmax")
    total = _log_of_sum(place, op.input("Y")[0])
    if place.through(total) != place.through(op.input("X")[0]):
        raise Refused("it is not a log_softmax")
    return _shifted(place, total)


def _log_of_sum(place: Place, name: str) -> str:
    """x if a value is log(sum(exp(x))) along the last axis, with JAX's abs of the sum."""
    log = place.maker(place.spread(name)[0], "log")
    inner = place.source.makers.get(place.through(log.input("X")[0]))
    name = inner.input("X")[0] if inner is not None and inner.type == "jax.abs" else log.input("X")[0]  # fmt: skip
    total = place.maker(place.spread(name)[0], "reduce_sum")
    exp = place.maker(total.input("X")[0], "exp").input("X")[0]
    if _only(total) != len(place.shape(exp)) - 1:
        raise Refused("it is not a sum along the last axis")
    return exp


def _picked(place: Place, name: str) -> tuple[str, str]:
    """(x, labels) if a value is the entry of each row of x at its label."""
    for _ in range(4):
        op = place.maker(name, "squeeze", "reshape", "gather")
        if op.type == "jax.gather":
            x, attrs = op.input("X")[0], op.attrs
            last = len(place.shape(x)) - 1
            ones = all(str(n) == "1" for n in attrs["slice_sizes"])
            batch = tuple(attrs.get("operand_batching_dims", ()))
            if ones and batch == tuple(range(last)) and tuple(attrs["start_index_map"]) == (last,):
                return x, counted(
                    place, place.spread(op.input("Indices")[0])[0], place.shape(x)[-1]
                )
            only = place.source.value(place.spread(op.input("Indices")[0])[0])
            if place.dims(x)[-1] != 1 or only is None or only.any():
                raise Refused("it takes other entries than one of each row")
        name = op.input("X")[0]
    raise Refused("it takes no entry of each row")


def _cross_entropy(place: Place, x: str, labels: str, ignored: int = -100) -> None:
    rows = place.dims(x)[:-1]
    if not rows:
        raise Refused("it is of one sample, without an axis of samples")
    labels = as_int64(place, place.reshaped(labels, [*rows, 1]))
    loss = place.add(
        "softmax_with_cross_entropy", {"Logits": x, "Label": labels}, "Loss", axis=-1, ignore_index=ignored,
    )  # fmt: skip
    place.reshaped(place.sized(loss, [*rows, 1]), place.dims(place.out.name), last=True)


@pattern("cross entropy", "sub")
def cross_entropy_of_logits(place: Place) -> None:
    """logsumexp(x) minus the label's entry of x."""
    if not place.op.input("X") or not place.op.input("Y"):
        raise Refused("an operand is a number")
    x, labels = _picked(place, place.op.input("Y")[0])
    added = place.maker(place.op.input("X")[0], "add")
    totals = [n for n, _ in _sides(added) if place.source.makers.get(place.through(n))]
    for name in totals:
        try:
            exp = _log_of_sum(place, name)
        except Refused:
            continue
        if place.through(_shifted(place, exp)) == place.through(x):
            _cross_entropy(place, x, labels)
            return
    raise Refused("it is not a logsumexp of the same values")


@pattern("cross entropy", "neg")
def cross_entropy(place: Place) -> None:
    """The label's entry of log_softmax(x), or the sum of its products with one-hot labels, negated;
    with other labels it stays composed, because Paddle's op clips logs at -64.
    """
    name = place.op.input("X")[0]
    op = place.maker(name, "reduce_sum", "squeeze", "reshape", "gather")
    if op.type != "jax.reduce_sum":
        logs, labels = _picked(place, name)
        _cross_entropy(place, _log_softmax_of(place, logs), labels)
        return
    product = place.maker(op.input("X")[0], "mul")
    for logs, hot in _sides(product):
        try:
            x = _log_softmax_of(place, logs)
            labels, depth = _counted_once(place, place.maker(hot, "convert_element_type"))
        except Refused:
            continue
        if place.dims(hot) == place.dims(x) and _only(op) == len(place.shape(x)) - 1 and depth == place.shape(x)[-1]:  # fmt: skip
            _cross_entropy(place, x, labels, ignored=-1)
            return
    raise Refused("it is not a product of a log_softmax and one-hot labels")


@pattern("embedding", "gather")
def embedding(place: Place) -> None:
    """Whole rows of a table by index, with or without negative indices counted from the end."""
    attrs, (table,), (index,) = place.op.attrs, place.op.input("X"), place.op.input("Indices")
    rows, width = (*place.shape(table), 0, 0)[:2]
    starts = tuple(attrs.get("start_index_map", ()))
    if starts == (0, 1):  # under jax.vmap: every row from its first column on
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
    index = counted(place, place.spread(index)[0], rows)
    out = place.dims(place.out.name)
    wanted = out[:-1] if attrs.get("collapsed_slice_dims") else out[:-2]
    if place.dims(index) != wanted:
        index = place.reshaped(index, wanted)
    index = as_int64(place, inside(place, index, rows))
    found = place.add("lookup_table_v2", {"W": table, "Ids": index}, padding_idx=-1)
    place.finish(found) if wanted == out[:-1] else place.reshaped(found, out, last=True)


@pattern("one_hot", "convert_element_type")
def one_hot(place: Place) -> None:
    """The comparison of an index with the numbers along a last axis."""
    index, depth = _counted_once(place, place.op)
    index = as_int64(place, place.reshaped(index, [*place.dims(place.out.name)[:-1]]))
    found = place.add("one_hot_v2", {"X": index}, depth=depth, dtype=enum_of("float32"), allow_out_of_range=True)  # fmt: skip
    _cast_to_out(place, found)


def _counted_once(place: Place, op: OpDesc) -> tuple[str, int]:
    """(index, depth) of one-hot rows."""
    same = place.maker(op.input("X")[0], "eq")
    rank = len(place.shape(op.output("Out")[0]))
    for a, b in _sides(same):
        numbers, axes = place.spread(b)
        value = place.source.value(numbers)
        index, own = place.spread(a)
        if value is None or axes != (rank - 1,) or own != tuple(range(rank - 1)):
            continue
        if list(value.ravel()) == list(range(value.size)) and "int" in str(place.var(index).dtype):
            return index, value.size
    raise Refused("it compares no index with the numbers along its last axis")
