"""Reshaping, joining and splitting: ops that move no element inside a tensor, and casts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..base.dtypes import name_of, numpy_dtype
from ..errors import ShapeError
from .concrete import are_numbers, integers, is_negative, numbers_of, refuse_huge
from .conditions import absent, attribute, both, first_axis, inner_axes, inner_axis
from .infer import Spec
from .integers import converted
from .registry import Array, Ints, grad_of, op
from .traits import (
    EAGER,
    Attrs,
    Eager,
    Shapes,
    by_values,
    elementwise,
    mixes,
    row_wise,
    sizes_from,
)


def xshape(X: Array) -> Array:
    """[0, *X.shape]: no elements; it carries the shape of X to the gradient."""
    return numbers_of(X.shape).zeros((0, *X.shape), X.dtype)


def _like_xshape(XShape: Array, d_Out: Array) -> Array:
    return d_Out.reshape(XShape.shape[1:])


def reshaped(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    """The dims of a tensor with `dims` after a reshape to `shape`: 0 copies a dim, one -1 is
    inferred.

    With an unknown dim the -1 stays, and nothing is checked.
    """
    if sum(n == -1 for n in shape) > 1 or any(is_negative(n) and n != -1 for n in shape):
        raise ShapeError(f"shape {list(shape)} may hold one -1 and no other negative number")
    if any(n == 0 and i >= len(dims) for i, n in enumerate(shape)):
        raise ShapeError(f"shape {list(shape)} copies with 0 a dim that {list(dims)} does not have")
    out = [dims[i] if n == 0 else n for i, n in enumerate(shape)]
    if any(d < 0 for d in dims):
        return tuple(out)
    total = math.prod(dims)
    rest = math.prod(n for n in out if n != -1)
    if not are_numbers(dims):
        return tuple(total // rest if n == -1 else n for n in out)  # JAX checks whether they fit
    if -1 in out and rest and total % rest == 0:
        out[out.index(-1)] = total // rest
    if math.prod(out) != total:
        raise ShapeError(f"a tensor of shape {list(dims)} cannot be reshaped to {list(shape)}")
    return tuple(out)


def _reshape_spec(
    X: Spec, Shape: Spec | None, ShapeTensor: tuple[Spec, ...] | None, *, shape: Ints
) -> Spec:
    if ShapeTensor:
        return Spec(
            tuple(X.shape[i] if n == 0 else n for i, n in enumerate(shape))
            or (-1,) * len(ShapeTensor),
            X.dtype,
        )
    if Shape is not None and not shape:
        return Spec((-1,) * Shape.shape[0], X.dtype)
    return Spec(reshaped(shape, X.shape), X.dtype)


def _reshape2_spec(
    X: Spec, Shape: Spec | None, ShapeTensor: tuple[Spec, ...] | None, *, shape: Ints
) -> Any:
    return _reshape_spec(X, Shape, ShapeTensor, shape=shape), Spec((0, *X.shape), X.dtype)


def _keeps_first(attrs: Attrs, shapes: Shapes) -> bool:
    """The first dimension stays the first."""
    x, to = shapes["X"], attrs["shape"]
    if shapes.get("Shape") or shapes.get("ShapeTensor") or not to:
        return False
    rest = [x[i] if n == 0 and i < len(x) else n for i, n in enumerate(to)][1:]
    return to[0] == 0 or (to[0] == -1 and math.prod(rest) == math.prod(x[1:]))


_NEW_SHAPE = sizes_from(
    "Shape ShapeTensor", lambda op, slot, i: slot == "Shape" and bool(op.input("ShapeTensor"))
)


@op(
    outs="Out",
    grad="X Shape ShapeTensor Out",
    infer=_reshape_spec,
    rows=row_wise("X", when=_keeps_first),
    carries="X",
    sizes=_NEW_SHAPE,
)
def reshape(X: Array, Shape: Array | None, ShapeTensor: list[Array] | None, *, shape: Ints = ()):
    """Out = X with the dims of `shape`: 0 copies X's dim, one -1 is inferred; tensors override
    `shape`.
    """
    return X.reshape(reshaped(integers("reshape", "Shape", Shape, ShapeTensor, shape), X.shape))


@op(
    outs="Out XShape~",
    infer=_reshape2_spec,
    rows=row_wise("X", when=_keeps_first, outs="Out"),
    carries="X",
    sizes=_NEW_SHAPE,
)
def reshape2(X: Array, Shape: Array | None, ShapeTensor: list[Array] | None, *, shape: Ints = ()):
    """Out = X with the dims of `shape`: 0 copies X's dim, one -1 is inferred; tensors override
    `shape`.
    """
    return reshape(X, Shape, ShapeTensor, shape=shape), xshape(X)


@op(
    outs="Out",
    grad="X Out",
    rows=row_wise("X", when=attribute("axis", lambda a: a[0] == 0), lod=None),
    carries="X",
)
def transpose(X: Array, *, axis: Ints, data_format: str = "AnyLayout"):
    """Out[i_axis[0], i_axis[1], ...] = X[i_0, i_1, ...]."""
    return jnp.transpose(X, axis)


@op(
    outs="Out XShape~",
    rows=row_wise("X", when=attribute("axis", lambda a: a[0] == 0), outs="Out", lod=None),
    carries="X",
)
def transpose2(X: Array, *, axis: Ints, data_format: str = "AnyLayout"):
    """Out[i_axis[0], i_axis[1], ...] = X[i_0, i_1, ...]."""
    return jnp.transpose(X, axis), xshape(X)


@grad_of("transpose2", "XShape")
def transpose2_grad(XShape: Array, d_Out: Array, *, axis: Ints):
    """d_X = the inverse transposition of d_Out."""
    return jnp.transpose(
        d_Out, [axis.index(i) if i in axis else axis.index(i - len(axis)) for i in range(len(axis))]
    )


def squeezed(dims: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The dims without those of `axes`, or without all of size 1; an unknown dim in `axes` counts
    as 1.
    """
    if not axes:
        return tuple(n for n in dims if n != 1)
    gone = {a + len(dims) if a < 0 else a for a in axes}
    wrong = [a for a in gone if not 0 <= a < len(dims) or dims[a] not in (1, -1)]
    if wrong:
        raise ShapeError(
            f"cannot squeeze axes {list(axes)} of shape {list(dims)}: each must be a dim of size 1"
        )
    return tuple(n for i, n in enumerate(dims) if i not in gone)


@op(
    outs="Out",
    grad="X",
    infer=lambda X, *, axes: Spec(squeezed(X.shape, axes), X.dtype),
    rows=row_wise("X", when=inner_axes("axes")),
    carries="X",
)
def squeeze(X: Array, *, axes: Ints = ()):
    """Out = X without the dims in `axes`, of size 1; without every dim of size 1 if axes is empty."""
    return X.reshape(squeezed(X.shape, axes))


@op(
    outs="Out XShape~",
    infer=lambda X, *, axes: (Spec(squeezed(X.shape, axes), X.dtype), Spec((0, *X.shape), X.dtype)),
    rows=row_wise("X", when=inner_axes("axes"), outs="Out"),
    carries="X",
)
def squeeze2(X: Array, *, axes: Ints = ()):
    """Out = X without the dims in `axes`, of size 1; without every dim of size 1 if axes is empty."""
    return X.reshape(squeezed(X.shape, axes)), xshape(X)


def unsqueezed(dims: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """The dims with a 1 inserted at each of `axes`, one after another: each axis refers to the
    shape so far.
    """
    out = list(dims)
    for axis in axes:
        at = axis + len(out) + 1 if axis < 0 else axis
        if not 0 <= at <= len(out):
            raise ShapeError(
                f"cannot unsqueeze shape {list(dims)} at axes {list(axes)}: {axis} is outside {out}"
            )
        out.insert(at, 1)
    return tuple(out)


def _unsqueeze_spec(
    X: Spec, AxesTensor: Spec | None, AxesTensorList: tuple[Spec, ...] | None, *, axes: Ints
) -> Spec:
    extra = len(AxesTensorList or ()) or (AxesTensor.shape[0] if AxesTensor is not None else 0)
    return Spec((-1,) * (X.ndim + extra) if extra else unsqueezed(X.shape, axes), X.dtype)


def _adds_inner(attrs: Attrs, shapes: Shapes) -> bool:
    """None of the new axes comes before the first."""
    return bool(attrs["axes"]) and all(
        a > 0 or a + len(shapes["X"]) + 1 > 0 > a for a in attrs["axes"]
    )


@op(
    outs="Out",
    grad="X",
    nograd="AxesTensor AxesTensorList",
    infer=_unsqueeze_spec,
    rows=row_wise("X", when=both(_adds_inner, absent("AxesTensor", "AxesTensorList"))),
    carries="X",
    sizes=sizes_from("AxesTensor AxesTensorList"),
)
def unsqueeze(
    X: Array, AxesTensor: Array | None, AxesTensorList: list[Array] | None, *, axes: Ints = ()
):
    """Out = X with a dim of size 1 inserted at each of `axes`, one after another."""
    return X.reshape(
        unsqueezed(X.shape, integers("unsqueeze", "AxesTensor", AxesTensor, AxesTensorList, axes))
    )


@op(
    outs="Out XShape~",
    infer=lambda X, AxesTensor, AxesTensorList, *, axes: (
        _unsqueeze_spec(X, AxesTensor, AxesTensorList, axes=axes),
        Spec((0, *X.shape), X.dtype),
    ),
    rows=row_wise("X", when=both(_adds_inner, absent("AxesTensor", "AxesTensorList")), outs="Out"),
    carries="X",
    sizes=sizes_from("AxesTensor AxesTensorList"),
)
def unsqueeze2(
    X: Array, AxesTensor: Array | None, AxesTensorList: list[Array] | None, *, axes: Ints = ()
):
    """Out = X with a dim of size 1 inserted at each of `axes`, one after another."""
    return unsqueeze(X, AxesTensor, AxesTensorList, axes=axes), xshape(X)


@op(outs="Out", grad="X", rows=row_wise("X", when=attribute("axis", lambda a: a == 1)), carries="X")
def flatten(X: Array, *, axis: int = 1):
    """Out [prod of the dims before `axis`, prod of the others] = X."""
    return X.reshape(math.prod(X.shape[:axis]), math.prod(X.shape[axis:]))


@op(
    outs="Out XShape~",
    rows=row_wise("X", when=attribute("axis", lambda a: a == 1), outs="Out"),
    carries="X",
)
def flatten2(X: Array, *, axis: int = 1):
    """Out [prod of the dims before `axis`, prod of the others] = X."""
    return flatten(X, axis=axis), xshape(X)


for _kind, _nograd in (
    ("reshape2", "Shape ShapeTensor"),
    ("squeeze2", ""),
    ("unsqueeze2", "AxesTensor AxesTensorList"),
    ("flatten2", ""),
):
    grad_of(_kind, "XShape", nograd=_nograd)(_like_xshape)


@grad_of(
    "reshape2_grad",
    "",
    wiring={"DOut": "Out@GRAD", "DDX": "X@GRAD@GRAD"},
    gives={"DDOut": "Out@GRAD"},
)
def reshape2_grad_grad(DOut: Array, DDX: Array):
    """DDOut = DDX with the shape of DOut."""
    return DDX.reshape(DOut.shape)


def _flatten_range_spec(X: Spec, *, start_axis: int, stop_axis: int) -> tuple[Spec, Spec]:
    start, stop = _range_of(X.ndim, start_axis, stop_axis)
    inner = X.shape[start : stop + 1]
    size = -1 if -1 in inner else math.prod(inner)
    return Spec((*X.shape[:start], size, *X.shape[stop + 1 :]), X.dtype), Spec(
        (0, *X.shape), X.dtype
    )


def _range_of(rank: int, start_axis: int, stop_axis: int) -> tuple[int, int]:
    start, stop = (a + rank if a < 0 else a for a in (start_axis, stop_axis))
    if not 0 <= start <= stop < max(rank, 1):
        raise ShapeError(
            f"flatten_contiguous_range of {rank} dimensions cannot go from axis {start_axis} to"
            f" {stop_axis}"
        )
    return start, stop


@op(outs="Out XShape", infer=_flatten_range_spec, rows=mixes("X"))
def flatten_contiguous_range(X: Array, *, start_axis: int = 1, stop_axis: int = 1):
    """Out = X with the dimensions from start_axis to stop_axis merged; XShape [0, *X.shape] carries
    the shape to the gradient.
    """
    start, stop = _range_of(X.ndim, start_axis, stop_axis)
    size = math.prod(X.shape[start : stop + 1])
    return X.reshape(*X.shape[:start], size, *X.shape[stop + 1 :]), xshape(X)


grad_of("flatten_contiguous_range", "XShape", grad_outs="Out")(_like_xshape)


def _concat_spec(X: tuple[Spec, ...], AxisTensor: Spec | None, *, axis: int) -> Spec:
    rank = X[0].ndim
    if any(x.ndim != rank for x in X):
        raise ShapeError(f"concat takes tensors of one rank, not {[list(x.shape) for x in X]}")
    if AxisTensor is not None:
        return Spec((-1,) * rank, X[0].dtype)
    if not -rank <= axis < rank:
        raise ShapeError(f"concat on axis {axis} of {rank} dimensions")
    at = axis + rank if axis < 0 else axis
    out = []
    for i, sizes in enumerate(zip(*(x.shape for x in X), strict=True)):
        if i == at:
            out.append(-1 if -1 in sizes else sum(sizes))
            continue
        found = {n for n in sizes if n != -1}
        if len(found) > 1:
            raise ShapeError(
                f"concat on axis {axis}: dim {i} differs in {[list(x.shape) for x in X]}"
            )
        out.append(found.pop() if found else -1)
    return Spec(tuple(out), X[0].dtype)


@op(
    outs="Out",
    grad="X AxisTensor",
    nograd="AxisTensor",
    infer=_concat_spec,
    rows=row_wise(
        "X",
        when=both(inner_axis("axis"), absent("AxisTensor")),
        joins=both(first_axis("axis"), absent("AxisTensor")),
    ),
    sizes=sizes_from("AxisTensor"),
)
def concat(X: list[Array], AxisTensor: Array | None, *, axis: int = 0):
    """Out = X[0], X[1], ... one after another along `axis`."""
    return jnp.concatenate(X, integers("concat", "AxisTensor", AxisTensor, None, [axis])[0])


def sections_of(size: int, num: int, sections: Sequence[int]) -> list[int]:
    """Sizes of the parts of a dim of `size` (-1: unknown): `num` equal ones, or `sections` with one
    -1 for the rest.
    """
    if num > 0:
        if size >= 0 and size % num:
            raise ShapeError(f"a dim of size {size} cannot be split into {num} equal parts")
        return [size // num if size >= 0 else -1] * num
    parts = list(sections)
    if size >= 0 and -1 in parts:
        parts[parts.index(-1)] = size - sum(parts) - 1
    if size >= 0 and (sum(parts) != size or min(parts) < 0):
        raise ShapeError(f"a dim of size {size} cannot be split into sections {list(sections)}")
    return parts


def _split_spec(
    X: Spec,
    AxisTensor: Spec | None,
    SectionsTensorList: tuple[Spec, ...] | None,
    *,
    sections: Ints,
    num: int,
    axis: int,
) -> tuple[Spec, ...]:
    if AxisTensor is not None:
        return (Spec((-1,) * X.ndim, X.dtype),) * (
            num or len(sections) or len(SectionsTensorList or ())
        )
    at = axis + X.ndim if axis < 0 else axis
    parts = (
        [-1] * len(SectionsTensorList)
        if SectionsTensorList
        else sections_of(X.shape[at], num, sections)
    )
    return tuple(Spec((*X.shape[:at], n, *X.shape[at + 1 :]), X.dtype) for n in parts)


@op(
    outs="Out*",
    infer=_split_spec,
    rows=row_wise(
        "X",
        when=both(inner_axis("axis"), absent("AxisTensor")),
        # an axis given by a tensor is not checked
        lod=lambda attrs, given: (
            "X" if attrs["axis"] or given.get("AxisTensor") is not None else None
        ),
    ),
    sizes=sizes_from("AxisTensor SectionsTensorList"),
)
def split(
    X: Array, AxisTensor: Array | None, SectionsTensorList: list[Array] | None, *,
    sections: Ints = (), num: int = 0, axis: int = 0,
):  # fmt: skip
    """Out[i] = X's i-th part along `axis`: `num` equal ones, or of sizes `sections` (one -1: the
    rest).
    """
    at = integers("split", "AxisTensor", AxisTensor, None, [axis])[0] % X.ndim
    sizes = integers("split", "SectionsTensorList", None, SectionsTensorList, sections)
    ends = np.cumsum([0, *sections_of(X.shape[at], num, sizes)]).tolist()
    return [lax.slice_in_dim(X, a, b, axis=at) for a, b in pairwise(ends)]


@op(outs="Y", rows=row_wise("X", when=inner_axis("axis", more=1)))
def stack(X: list[Array], *, axis: int = 0):
    """Y = X[0], X[1], ... along a new dim `axis`."""
    return jnp.stack(X, axis)


def unstacked(X: Array, axis: int) -> list[Array]:
    axis %= X.ndim
    return [
        lax.squeeze(lax.slice_in_dim(X, i, i + 1, axis=axis), [axis]) for i in range(X.shape[axis])
    ]


@grad_of("stack", "")
def stack_grad(d_Y: Array, *, axis: int):
    """d_X[i] = d_Y's i-th slice along `axis`."""
    return unstacked(d_Y, axis)


def _unstack_spec(X: Spec, *, axis: int, num: int = 0) -> tuple[Spec, ...]:
    if not -X.ndim <= axis < X.ndim:
        raise ShapeError(f"axis {axis} is not one of the {X.ndim} dimensions of X{list(X.shape)}")
    at = axis % X.ndim
    return (Spec(X.shape[:at] + X.shape[at + 1 :], X.dtype),) * (num or X.shape[at])


@op(outs="Y*", infer=_unstack_spec, rows=row_wise("X", when=inner_axis("axis"), lod=None))
def unstack(X: Array, *, axis: int = 0, num: int):
    """Y[i] = X's i-th slice along `axis`, a dim of size `num`."""
    if X.shape[axis] != num:
        raise ShapeError(f"unstack: axis {axis} of X has size {X.shape[axis]}, but num is {num}")
    return unstacked(X, axis)


@grad_of("unstack", "")
def unstack_grad(d_Y: list[Array | None], *, axis: int):
    """d_X = d_Y[0], d_Y[1], ... stacked along `axis`; one that is None counts as zeros."""
    some = next(d for d in d_Y if d is not None)
    return jnp.stack([jnp.zeros_like(some) if d is None else d for d in d_Y], axis)


@op(outs="Out*", infer=_unstack_spec, rows=row_wise("X", when=inner_axis("axis")))
def unbind(X: Array, *, axis: int = 0):
    """Out[i] = X's i-th slice along `axis`."""
    return unstacked(X, axis)


def expanded(dims: Sequence[int], times: Sequence[int]) -> tuple[int, ...]:
    """dims * times, -1 if either is unknown."""
    if len(times) != len(dims):
        raise ShapeError(
            f"expand_times {list(times)} needs one number for each dim of {list(dims)}"
        )
    return tuple(-1 if -1 in (n, t) else n * t for n, t in zip(dims, times, strict=True))


def _expand_spec(
    X: Spec,
    ExpandTimes: Spec | None,
    expand_times_tensor: tuple[Spec, ...] | None,
    *,
    expand_times: Ints,
) -> Spec:
    times = expand_times or (
        (-1,) * X.ndim if ExpandTimes is not None or expand_times_tensor else ()
    )
    return Spec(expanded(X.shape, times), X.dtype)


@op(
    outs="Out",
    grad="X ExpandTimes expand_times_tensor",
    nograd="ExpandTimes expand_times_tensor",
    infer=_expand_spec,
    rows=row_wise(
        "X",
        when=both(
            attribute("expand_times", lambda t: t and t[0] == 1),
            absent("ExpandTimes", "expand_times_tensor"),
        ),
    ),
    carries="X",
    sizes=sizes_from("ExpandTimes expand_times_tensor"),
)
def expand(
    X: Array,
    ExpandTimes: Array | None,
    expand_times_tensor: list[Array] | None,
    *,
    expand_times: Ints = (),
):
    """Out = X repeated expand_times[i] times along dim i."""
    times = integers("expand", "ExpandTimes", ExpandTimes, expand_times_tensor, expand_times)
    if any(map(is_negative, times)):
        raise ShapeError(f"expand_times {list(times)} holds a negative number")
    refuse_huge("expand", expanded(X.shape, times), X.dtype)
    return jnp.tile(X, times)


def _expand_as_spec(X: Spec, target_tensor: Spec) -> Spec:
    ends = zip(X.shape, target_tensor.shape, strict=False)
    if X.ndim != target_tensor.ndim or any(n > 0 and t > 0 and t % n for n, t in ends):
        raise ShapeError(
            f"expand_as: {list(X.shape)} cannot be repeated to {list(target_tensor.shape)}"
        )
    return Spec(target_tensor.shape, X.dtype)


@op(
    outs="Out",
    grad="X target_tensor",
    nograd="target_tensor",
    infer=_expand_as_spec,
    rows=mixes(),
    shape_of=("target_tensor",),
)
def expand_as(X: Array, target_tensor: Array):
    """Out = X repeated along each dim until it has target_tensor's shape."""
    if X.ndim != target_tensor.ndim or any(
        t % n for n, t in zip(X.shape, target_tensor.shape, strict=True)
    ):
        raise ShapeError(
            f"expand_as: {list(X.shape)} cannot be repeated to {list(target_tensor.shape)}"
        )
    return jnp.tile(X, [t // n for n, t in zip(X.shape, target_tensor.shape, strict=True)])


def _to_float(attrs: Attrs) -> bool:
    """The cast is not constant-folded if NumPy and XLA differ: for NaN and for floats that an
    integer cannot hold.
    """
    return np.issubdtype(numpy_dtype(name_of(attrs["out_dtype"])), np.floating)


@op(outs="Out", rows=elementwise("X"), carries="X", eager=Eager(when=_to_float))
def cast(X: Array, *, in_dtype: int, out_dtype: int):
    """Out = X as dtype `out_dtype`; `in_dtype` is ignored, because X has a dtype. Floats are
    rounded toward zero.
    """
    return converted(X, numpy_dtype(name_of(out_dtype)))


@op(outs="Out", rows=elementwise("X"), sparse=by_values(), carries="X", eager=EAGER)
def assign(X: Array | None):
    """Out = X."""
    return X


@op(outs="Out", rows=mixes(), shape_of=("Input",))
def shape(Input: Array):
    """Out = the dims of Input, int32 [rank]; a NumPy array if they are known while tracing."""
    if are_numbers(Input.shape):
        return np.array(Input.shape, np.int32)
    return jnp.stack([jnp.asarray(n, np.int32) for n in Input.shape])


def _size_spec(Input: Spec) -> Spec:
    return Spec((1,), "int64")


@op(outs="Out", infer=_size_spec, rows=mixes(), shape_of=("Input",))
def size(Input: Array):
    """Out = the number of elements of Input, int64 [1]."""
    return numbers_of(Input.shape).asarray(math.prod(Input.shape), np.int64).reshape(1)
