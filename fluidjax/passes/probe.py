"""The measured difference of two short runs of ops on the same random input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..base.dtypes import numpy_dtype
from ..ir import edit
from ..ir.desc import BlockDesc, FrozenMap, OpDesc, ProgramDesc, VarDesc
from ..lower.step import Step
from .affine import RESHAPES

BATCH, SIZE = 2, 8  # sizes for a probe's open dimensions


@dataclass(frozen=True, slots=True)
class Error:
    """The largest absolute difference, also divided by the largest absolute value; and the probe's
    shape.
    """

    absolute: float
    relative: float
    shape: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"absolute": self.absolute, "relative": self.relative, "shape": list(self.shape)}

    def __str__(self) -> str:
        return (
            f"{self.absolute:.1e} absolute, {self.relative:.1e} relative (probe {list(self.shape)})"
        )


def measure(
    vars: Mapping[str, VarDesc],
    values: Mapping[str, Any],
    before: Sequence[OpDesc],
    after: Sequence[OpDesc],
    result: str,
) -> Error:
    """Run two chains of ops on one standard normal input, and compare their results.

    values: the parameters of both. The chains read one further variable, the input; both write
    `result`, which is compared. Equal chains of equal shapes share one compiled comparison.
    """
    made = {n for op in (*before, *after) for n in op.writes}
    free = [
        n
        for n in dict.fromkeys(n for op in before for n in op.reads)
        if n not in values and n not in made
    ]
    (source,) = free
    params = [
        n for n in dict.fromkeys(n for op in (*before, *after) for n in op.reads) if n in values
    ]
    shape = _probe_shape(
        vars[source], before[0], [np.shape(values[n]) for n in before[0].reads if n in values]
    )
    if any(op.type in RESHAPES for op in before):  # their attributes name the declared sizes
        declared = vars[source].shape or ()
        shape = [n if n > 0 else small for n, small in zip(declared, shape, strict=True)]
    x = _input(tuple(shape), vars[source].dtype or "float32")
    arrays = [np.asarray(values[n]) for n in params]
    chains = [_canonical(ops, source, params, result, vars) for ops in (before, after)]
    with jax.enable_x64(True):
        absolute, largest = np.asarray(_comparison(*chains)(x, arrays)).tolist()
    return Error(absolute, absolute / largest if largest else absolute, tuple(shape))


@lru_cache(maxsize=64)
def _input(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.RandomState(0).standard_normal(shape).astype(numpy_dtype(dtype))


def _canonical(
    ops: Sequence[OpDesc],
    source: str,
    params: Sequence[str],
    result: str,
    vars: Mapping[str, VarDesc],
) -> ProgramDesc:
    """The ops as a program with canonical names, so that equal chains compare equal."""
    names = {source: "x", **{n: f"p{i}" for i, n in enumerate(params)}}
    names.setdefault(result, "y")  # an inplace_abn may give its result the input's name
    for op in ops:
        for n in op.writes:
            names.setdefault(n, f"t{len(names)}")
    # jit handles shapes: one comparison serves chains that differ only in them.
    known = {
        new: VarDesc(new, persistable=old in params, is_data=old == source)
        for old, new in names.items()
        if old in vars
    }
    return ProgramDesc(
        (
            BlockDesc(
                FrozenMap(known),
                tuple(replace(edit.rename_op(op, names), uid=i) for i, op in enumerate(ops)),
            ),
        )
    )


@lru_cache(maxsize=256)
def _comparison(before: ProgramDesc, after: ProgramDesc) -> Any:
    """A jitted function of the input and the parameters: largest difference, and largest value."""
    first, second = (
        Step(d, ("y",) if "y" in d.blocks[0].vars else ("x",)) for d in (before, after)
    )

    def run(step: Step, x: Any, params: Mapping[str, Any]) -> Any:
        _, (y,) = step({n: params[n] for n in step.reads}, {"x": x})
        return y.astype(jnp.float32)

    def compare(x: Any, arrays: Sequence[Any]) -> Any:
        params = {f"p{i}": a for i, a in enumerate(arrays)}
        a, b = run(first, x, params), run(second, x, params)
        return jnp.stack([jnp.max(jnp.abs(a - b)), jnp.max(jnp.abs(a))])

    return jax.jit(compare)


def _probe_shape(var: VarDesc, op: OpDesc, weights: Sequence[tuple[int, ...]]) -> list[int]:
    """A small shape of the input that the op accepts: few rows, images just larger than the window."""
    shape = list(var.shape or ())
    if op.type in ("mul", "fc"):
        lead = int(op.attrs.get("x_num_col_dims", op.attrs.get("in_num_col_dims", 1)))
    elif op.type.startswith("matmul"):
        lead = len(shape) - 1
    else:
        return _image_shape(shape, op, weights[0])
    return [
        BATCH if i == 0 else min(n, SIZE) if n > 0 else SIZE for i, n in enumerate(shape[:lead])
    ] + shape[lead:]


def _image_shape(shape: list[int], op: OpDesc, filter_shape: tuple[int, ...]) -> list[int]:
    last = op.attrs.get("data_format", "NCHW") in ("NHWC", "NDHWC")
    dilations = op.attrs.get("dilations", (1,) * (len(shape) - 2))
    window = [(k - 1) * d + 1 for k, d in zip(filter_shape[2:], dilations, strict=False)]
    space = [max(SIZE, 2 * n) for n in window]
    channels = shape[-1] if last else shape[1]
    return [BATCH, *space, channels] if last else [BATCH, channels, *space]
