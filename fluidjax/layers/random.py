"""Random tensors. A seed of 0 means new numbers in each step, reproducible by the program's
random_seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import unique_name
from ..base.dtypes import enum_of
from ..base.loc import located
from ..graph.variable import Variable
from ..initializer import ConstantInitializer
from ..layer_helper import LayerHelper
from ._build import FLOATS, append, dtype_in, int_argument, require, sized, typed, variable
from .tensor import _device, _shape_argument


@located
def uniform_random(
    shape: Any, dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Uniform on [min, max). shape: integers and variables, or a variable."""
    dtype_in(dtype, "dtype", "uniform_random", FLOATS)
    helper = LayerHelper("uniform_random")
    inputs, attrs = int_argument(
        helper, shape, "shape", "shape", "ShapeTensor", "ShapeTensorList", "int64"
    )
    attrs |= {"seed": seed, "min": min, "max": max, "dtype": int(enum_of(dtype))}
    return append(helper, inputs, {"Out": dtype}, attrs)


@located
def gaussian_random(
    shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = "float32"
) -> Variable:
    """Normal with this mean and deviation. shape: integers and variables, or a variable."""
    typed(shape, "shape", (list, tuple, Variable), "gaussian_random")
    dtype_in(dtype, "dtype", "gaussian_random", FLOATS)
    inputs: dict[str, Any] = {}
    attrs: dict[str, Any] = {
        "mean": mean,
        "std": std,
        "seed": seed,
        "dtype": int(enum_of(dtype)),
        "use_mkldnn": False,
    }
    helper = LayerHelper("gaussian_random")
    _shape_argument(shape, "gaussian_random", inputs, attrs)
    return append(helper, inputs, {"Out": dtype}, attrs)


@located
def uniform_random_batch_size_like(
    input: Variable, shape: Sequence[int], dtype: Any = "float32", input_dim_idx: int = 0, output_dim_idx: int = 0,
    min: float = -1.0, max: float = 1.0, seed: int = 0,
) -> Variable:  # fmt: skip
    """uniform_random whose dimension output_dim_idx has the size of input's dimension
    input_dim_idx.
    """
    variable(input, "Input", "uniform_random_batch_size_like", ("float32", "float64"))
    typed(shape, "shape", (list, tuple), "uniform_random_batch_size_like")
    attrs = {"min": min, "max": max}
    return _batch_size_like(
        "uniform_random_batch_size_like",
        input,
        shape,
        dtype,
        input_dim_idx,
        output_dim_idx,
        seed,
        attrs,
    )


@located
def gaussian_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """gaussian_random whose dimension output_dim_idx has the size of input's dimension
    input_dim_idx.
    """
    typed(input, "input", Variable, "gaussian_random_batch_size_like")
    typed(shape, "shape", (list, tuple), "gaussian_random_batch_size_like")
    attrs = {"mean": mean, "std": std}
    return _batch_size_like(
        "gaussian_random_batch_size_like",
        input,
        shape,
        dtype,
        input_dim_idx,
        output_dim_idx,
        seed,
        attrs,
    )


def _batch_size_like(
    layer: str,
    input: Variable,
    shape: Sequence[int],
    dtype: Any,
    input_dim_idx: int,
    output_dim_idx: int,
    seed: int,
    attrs: dict[str, Any],
) -> Variable:
    dtype_in(dtype, "dtype", layer, FLOATS)
    attrs |= {"shape": list(shape), "input_dim_idx": input_dim_idx, "output_dim_idx": output_dim_idx, "seed": seed,
              "dtype": int(enum_of(dtype))}  # fmt: skip
    return append(LayerHelper(layer), {"Input": input}, {"Out": dtype}, attrs)


@located
def sampling_id(
    x: Variable, min: float = 0.0, max: float = 1.0, seed: int = 0, dtype: Any = "float32"
) -> Variable:
    """One class index for each row, sampled by its probabilities [N, C]; min and max bound the
    underlying uniform samples.
    """
    typed(x, "x", Variable, "sampling_id")
    return append(
        LayerHelper("sampling_id"), {"X": x}, {"Out": dtype}, {"min": min, "max": max, "seed": seed}
    )


@located
def random_crop(x: Variable, shape: Any, seed: Any = None) -> Variable:
    """A box of `shape` from x's last dimensions, at a random position for each index of the first
    ones and each step.

    seed: an integer, or an int64 variable [1]; it is stored in the op, but the samples depend on
    the program's random_seed.
    """
    variable(x, "x", "random_crop", ("float32", "float64", "uint8", "int16", "int32"))
    typed(shape, "shape", list, "random_crop")
    helper = LayerHelper("random_crop")
    attrs: dict[str, Any] = {"shape": shape}
    if not isinstance(seed, Variable):
        attrs["startup_seed"] = start = typed(
            0 if seed is None else seed, "seed", (int, Variable), "random_crop"
        )
        name = unique_name.generate("random_crop_seed")
        seed = helper.create_variable(name=name, dtype="int64", shape=[1], persistable=True)
        helper.set_variable_initializer(seed, ConstantInitializer(float(start)))
    return append(helper, {"X": x, "Seed": seed}, {"Out": x.dtype, "SeedOut": seed}, attrs)[0]


@located
def randint(
    low: int,
    high: int | None = None,
    shape: Any = None,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> Variable:
    """Random integers in [low, high), or in [0, low) without high; int64 [1] by default. device is
    ignored.
    """
    low, high = (0, low) if high is None else (low, high)
    require(low < high, f"randint samples from [low, high), which [{low}, {high}) leaves empty")
    helper = LayerHelper("randint", name=name)
    name_ = dtype_in("int64" if dtype is None else dtype, "dtype", "randint", ("int32", "int64"))
    _device(device, "randint")
    inputs, sizes = int_argument(
        helper,
        [1] if shape is None else shape,
        "shape",
        "shape",
        "ShapeTensor",
        "ShapeTensorList",
        "int64",
    )
    attrs = {
        "low": low,
        "high": high,
        "seed": seed,
        "dtype": int(enum_of(name_)),
        **({} if inputs else sizes),
    }
    result = append(helper, inputs, {"Out": name_ if out is None else out}, attrs)
    result.stop_gradient = stop_gradient
    return result


@located
def randn(
    shape: Any,
    out: Variable | None = None,
    dtype: Any = None,
    device: str | None = None,
    stop_gradient: bool = True,
    name: str | None = None,
) -> Variable:
    """Standard normal, float32 by default. Fluid puts a random seed into the op; here it is 0."""
    helper = LayerHelper("randn", name=name)
    name_ = dtype_in("float32" if dtype is None else dtype, "dtype", "randn", FLOATS)
    _device(device, "randn")
    sized(typed(shape, "shape", (list, tuple), "randn"), "randn")
    attrs = {
        "mean": 0.0,
        "std": 1.0,
        "seed": 0,
        "shape": list(shape),
        "dtype": int(enum_of(name_)),
        "use_mkldnn": False,
    }
    result = append(
        helper, {}, {"Out": name_ if out is None else out}, attrs, kind="gaussian_random"
    )
    result.stop_gradient = stop_gradient
    return result


@located
def randperm(
    n: int,
    out: Variable | None = None,
    dtype: Any = "int64",
    device: str | None = None,
    stop_gradient: bool = True,
    seed: int = 0,
) -> Variable:
    """0 to n - 1 in random order. device is ignored; out: a variable to write."""
    require(n > 0, f"randperm's n is positive, not {n}")
    name = dtype_in(dtype, "dtype", "randperm", ("int32", "int64"))
    _device(device, "randperm")
    helper = LayerHelper("randperm")
    attrs = {"n": n, "dtype": int(enum_of(name)), "seed": seed}
    result = append(helper, {}, {"Out": name if out is None else out}, attrs)
    result.stop_gradient = stop_gradient
    return result


__all__ = [
    "gaussian_random",
    "gaussian_random_batch_size_like",
    "randint",
    "randn",
    "random_crop",
    "randperm",
    "sampling_id",
    "uniform_random",
    "uniform_random_batch_size_like",
]
