"""paddle.nn.functional: dropout, products, embeddings, padding, sizes of images."""

from __future__ import annotations

from typing import Any

from .... import layers
from ....errors import UnsupportedError
from ....graph.variable import Variable
from ....input import one_hot as _one_hot
from ....layer_helper import LayerHelper
from ....layers import diag_embed, gather_tree, sequence_mask, unfold
from ....layers._build import append, one_of, require, size_list, typed


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    name: str | None = None,
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior; the default prior is uniform over the classes.

    Raises FluidValueError for an epsilon outside [0, 1].
    """
    return layers.label_smooth(label, prior_dist, epsilon, name=name)


def one_hot(x: Variable, num_classes: int, name: str | None = None) -> Variable:
    """Vectors of num_classes with a 1 at index x: the shape of x and one more dimension."""
    return _one_hot(x, num_classes)


def linear(
    x: Variable, weight: Variable, bias: Variable | None = None, name: str | None = None
) -> Variable:
    """x @ weight + bias: [..., D] and [D, M] give [..., M]."""
    out = append(
        LayerHelper("linear", name=name), {"X": x, "Y": weight}, {"Out": x.dtype}, kind="matmul_v2"
    )
    return out if bias is None else layers.elementwise_add(out, bias, axis=x.ndim - 1)


def normalize(
    x: Variable, p: float = 2, axis: int = 1, epsilon: float = 1e-12, name: str | None = None
) -> Variable:
    """x divided by the p-norm of its vectors along `axis`, or by epsilon if that is larger."""
    axis = axis if x.ndim > 1 else 0
    attrs = {"porder": float(p), "axis": axis, "keepdim": True, "epsilon": float(epsilon)}
    size = append(LayerHelper("p_norm", name=name), {"X": x}, {"Out": x.dtype}, attrs)
    return layers.elementwise_div(
        x,
        layers.elementwise_max(size, layers.fill_constant([1], x.dtype, float(epsilon))),
        name=name,
    )


def dropout(
    x: Variable,
    p: float = 0.5,
    axis: Any = None,
    training: bool = True,
    mode: str = "upscale_in_train",
    name: str | None = None,
) -> Variable:
    """x with each element zero with probability p; mode "upscale_in_train" (kept ones grow) or
    "downscale_in_infer".

    axis: an integer or a list; the mask is shared along all other dimensions. Raises
    FluidValueError for another mode, a p outside of [0, 1], an axis that x lacks.
    """
    kind = {"downscale_in_infer": "downgrade_in_infer"}.get(mode, mode)
    if axis is None:
        return layers.dropout(x, p, is_test=not training, dropout_implementation=kind, name=name)
    axes = [
        a if a >= 0 else x.ndim + a for a in (axis if isinstance(axis, list | tuple) else [axis])
    ]
    require(
        all(0 <= a < x.ndim for a in axes),
        f"dropout's axis {axis} is not an axis of {x.name!r} {list(x.shape)}",
    )
    others = [a for a in range(x.ndim) if a not in axes]
    zeros = layers.zeros_like(x)
    each = layers.scale(
        layers.reduce_sum(zeros, others, keep_dim=True) if others else zeros, 1.0, 1.0
    )
    each.stop_gradient = True
    kept = layers.dropout(each, p, is_test=not training, dropout_implementation=kind, name=name)
    return layers.elementwise_mul(x, kept)


def _channels(x: Variable, data_format: str, rank: int, layer: str) -> list[int]:
    formats = ("NCHW", "NHWC") if rank == 4 else ("NCDHW", "NDHWC")
    one_of(data_format, "data_format", layer, formats)
    require(
        x.ndim == rank,
        f"{layer}'s x has {rank} dimensions, but {x.name!r} has shape {list(x.shape)}",
    )
    return [0, 1 if data_format == formats[0] else rank - 1]


def dropout2d(
    x: Variable,
    p: float = 0.5,
    training: bool = True,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """dropout of whole channels of images."""
    return dropout(x, p, _channels(x, data_format, 4, "dropout2d"), training, name=name)


def dropout3d(
    x: Variable,
    p: float = 0.5,
    training: bool = True,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Variable:
    """dropout of whole channels of volumes."""
    return dropout(x, p, _channels(x, data_format, 5, "dropout3d"), training, name=name)


def alpha_dropout(
    x: Variable, p: float = 0.5, training: bool = True, name: str | None = None
) -> Variable:
    """a * (x where kept, else -1.758...) + b, with elements kept with probability 1 - p; a and b
    preserve mean 0 and variance 1.

    Raises FluidValueError for a p outside of [0, 1].
    """
    return _alpha(x, [], p, training)


def _alpha(x: Variable, together: list[int], p: float, training: bool) -> Variable:
    """alpha_dropout with one random number for all elements along the axes `together`."""
    require(0 <= p <= 1, f"alpha_dropout's p is between 0 and 1, not {p}")
    if not training or p == 0:
        return layers.scale(x, 1.0)
    low = -1.6732632423543772 * 1.0507009873554805
    a = 0.0 if p == 1 else ((1 - p) * (1 + p * low**2)) ** -0.5
    ones = layers.ones_like(x)
    if together:
        ones = layers.reduce_max(ones, together, keep_dim=True)
    ones.stop_gradient = True
    kept = layers.dropout(ones, p, dropout_implementation="downgrade_in_infer")
    out = layers.elementwise_add(layers.elementwise_mul(x, kept), layers.scale(kept, -low, low))
    return layers.scale(out, a, -a * low * p)


def dropout1d(
    input: Variable, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Variable:
    """dropout of whole channels of [N, C, L], or of rows [C, L]. Raises FluidValueError for other
    ranks.
    """
    require(input.ndim in (2, 3), f"dropout1d takes [N, C, L] or [C, L], not {list(input.shape)}")
    return dropout(input, p, [0, 1] if input.ndim == 3 else [0], training)


def feature_alpha_dropout(
    x: Variable, p: float = 0.5, training: bool = True, name: str | None = None
) -> Variable:
    """alpha_dropout of whole channels [N, C, ...]. Raises FluidValueError for fewer than two
    dimensions.
    """
    require(x.ndim >= 2, f"feature_alpha_dropout takes two dimensions or more, not {list(x.shape)}")
    return _alpha(x, list(range(2, x.ndim)), p, training)


def embedding(
    x: Variable,
    weight: Variable,
    padding_idx: int | None = None,
    sparse: bool = False,
    name: str | None = None,
) -> Variable:
    """Rows of weight [V, D] by ids: x's shape with D appended; padding_idx: a row that reads as
    zeros, negative from the end.

    Raises FluidValueError for a padding_idx outside of the rows.
    """
    rows = weight.shape[0]
    if padding_idx is not None:
        require(
            -rows <= padding_idx < rows,
            f"embedding's padding_idx {padding_idx} is not one of {rows} rows",
        )
        padding_idx = padding_idx if padding_idx >= 0 else rows + padding_idx
    attrs = {"is_sparse": sparse, "padding_idx": -1 if padding_idx is None else padding_idx}
    helper = LayerHelper("embedding", name=name)
    return append(
        helper, {"Ids": x, "W": weight}, {"Out": weight.dtype}, attrs, kind="lookup_table_v2"
    )


def bilinear(
    x1: Variable,
    x2: Variable,
    weight: Variable,
    bias: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """out[:, i] = x1 @ weight[i] @ x2 + bias[0, i]: [N, D1], [N, D2] and [M, D1, D2] give [N, M]."""
    inputs = {"X": x1, "Y": x2, "Weight": weight, "Bias": bias}
    return append(
        LayerHelper("bilinear", name=name),
        inputs,
        {"Out": x1.dtype},
        kind="bilinear_tensor_product",
    )


def cosine_similarity(x1: Variable, x2: Variable, axis: int = 1, eps: float = 1e-8) -> Variable:
    """sum(x1 * x2) / sqrt(max(sum(x1 ** 2) * sum(x2 ** 2), eps ** 2)), with sums along `axis`."""
    both, one, two = (
        layers.reduce_sum(layers.elementwise_mul(a, b), axis)
        for a, b in ((x1, x2), (x1, x1), (x2, x2))
    )
    sizes = layers.clip(layers.elementwise_mul(one, two), eps * eps, 3e38)
    return layers.elementwise_div(both, layers.sqrt(sizes))


def pad(
    x: Variable,
    pad: Any,
    mode: str = "constant",
    value: float = 0.0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """x padded at its ends: by `value` ("constant"), mirrored ("reflect"), with the border
    ("replicate") or periodically ("circular").

    pad: two integers for each dimension of x from the first on (only "constant"), or two for each
    dimension of the image from the last on: [left, right, top, bottom, front, back]. data_format:
    "NCL", "NLC", "NCHW", "NHWC", "NCDHW" or "NDHWC". Raises FluidValueError for another mode,
    format, or number of integers.
    """
    one_of(mode, "mode", "pad", ("constant", "reflect", "replicate", "circular"))
    sizes = [int(n) for n in typed(pad, "pad", (list, tuple), "pad")]
    if mode == "constant" and len(sizes) == 2 * x.ndim:
        return layers.pad(x, sizes, value, name)
    formats = {3: ("NCL", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}
    require(
        x.ndim in formats, f"pad takes 3 to 5 dimensions, but {x.name!r} has shape {list(x.shape)}"
    )
    one_of(data_format, "data_format", "pad", formats[x.ndim])
    n = x.ndim - 2
    require(
        len(sizes) == 2 * n,
        f"pad of {x.name!r} {list(x.shape)} takes {2 * n} integers or {2 * x.ndim}, not {sizes}",
    )
    last = data_format.endswith("C")
    extra = list(range(2 + n, 5)) if not last else list(range(1 + n, 4))
    volume = layers.unsqueeze(x, extra) if extra else x
    attrs = {
        "paddings": [0] * (6 - len(sizes)) + sizes, "mode": mode, "value": float(value), "data_format": "NDHWC" if last else "NCDHW",
    }  # fmt: skip
    out = append(LayerHelper("pad3d", name=name), {"X": volume}, {"Out": x.dtype}, attrs)
    return layers.squeeze(out, extra) if extra else out


def zeropad2d(
    x: Variable, padding: Any, data_format: str = "NCHW", name: str | None = None
) -> Variable:
    """Images padded with zeros by [left, right, top, bottom]."""
    return pad(x, padding, "constant", 0.0, data_format, name)


_MODES = {
    "linear": (3,),
    "nearest": (3, 4, 5),
    "bilinear": (4,),
    "bicubic": (4,),
    "trilinear": (5,),
    "area": (3, 4, 5),
}
_LAYOUTS = {3: ("NCW", "NWC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}


def interpolate(
    x: Variable,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """x resized to `size` (integers, or a variable of them) or by scale_factor (a number, a list,
    or a variable).

    mode: "nearest" (3 to 5 dimensions), "linear" (3), "bilinear", "bicubic" (4), "trilinear" (5),
    "area" (means over regions). align_corners: whether the first and last pixels coincide;
    align_mode 0: pixel centres are at halves. Raises FluidValueError if both sizes or none are
    given, and for a mode or format that does not fit x.
    """
    one_of(mode, "mode", "interpolate", tuple(_MODES))
    ranks = " or ".join(map(str, _MODES[mode]))
    require(
        x.ndim in _MODES[mode],
        f"interpolate's {mode} takes {ranks} dimensions, but {x.name!r} has shape {list(x.shape)}",
    )
    require(
        (size is None) != (scale_factor is None), "interpolate takes one of size and scale_factor"
    )
    require(
        not (mode == "nearest" and align_corners), "interpolate's nearest takes align_corners=False"
    )
    data_format = {"NCHW": _LAYOUTS[x.ndim][0], "NCL": "NCW", "NLC": "NWC"}.get(
        data_format, data_format
    )
    one_of(data_format, "data_format", "interpolate", _LAYOUTS[x.ndim])
    n, last = x.ndim - 2, data_format.endswith("C")
    if mode == "area":
        return _area(x, size, scale_factor, last)
    kind = {3: "linear", 4: mode, 5: "trilinear"}[x.ndim] if mode != "nearest" else "nearest"
    flat = mode == "nearest" and x.ndim == 3  # one row of an image
    attrs = {"interp_method": mode, "align_corners": align_corners, "align_mode": align_mode}
    attrs |= {
        "data_layout": ("NHWC" if last else "NCHW") if n < 3 else data_format,
        "out_d": -1,
        "out_h": -1,
        "out_w": -1,
    }
    inputs: dict[str, Any] = {"X": layers.unsqueeze(x, [1 if last else 2]) if flat else x}
    names = ("out_d", "out_h", "out_w")[3 - n :]
    if isinstance(size, Variable):
        require(not flat, "interpolate's nearest of 3 dimensions takes integers")
        inputs["OutSize"] = size
    elif size is not None:
        attrs |= dict(zip(names, size_list(size, n, "size", "interpolate"), strict=True))
        attrs |= {"out_h": 1} if flat else {}
    elif isinstance(scale_factor, Variable):
        inputs["Scale"] = scale_factor
    else:
        factors = [
            float(f)
            for f in (
                scale_factor if isinstance(scale_factor, list | tuple) else [scale_factor] * n
            )
        ]
        fits = len(factors) == n and min(factors) > 0
        require(
            fits,
            f"interpolate's scale_factor is a number above 0 or {n} of them, not {scale_factor!r}",
        )
        attrs["scale"] = [1.0, *factors] if flat else factors
    out = append(LayerHelper(f"{kind}_interp_v2", name=name), inputs, {"Out": x.dtype}, attrs)
    return layers.squeeze(out, [1 if last else 2]) if flat else out


def _area(x: Variable, size: Any, scale_factor: Any, last: bool) -> Variable:
    """Means over regions: adaptive pooling."""
    n = x.ndim - 2
    if last or isinstance(size, Variable) or scale_factor is not None:
        raise UnsupportedError("interpolate's area takes channels first and a size of integers")
    sizes = size_list(size, n, "size", "interpolate")
    if n == 1:
        return layers.squeeze(
            layers.adaptive_pool2d(layers.unsqueeze(x, [2]), [1, *sizes], "avg"), [2]
        )
    return (layers.adaptive_pool2d if n == 2 else layers.adaptive_pool3d)(x, sizes, "avg")


def upsample(
    x: Variable,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """interpolate under its other name."""
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format, name)


__all__ = [
    "alpha_dropout", "bilinear", "cosine_similarity", "diag_embed", "dropout", "dropout1d", "dropout2d", "dropout3d", "embedding",
    "feature_alpha_dropout", "gather_tree", "interpolate", "label_smooth", "linear", "normalize", "one_hot", "pad", "sequence_mask",
    "unfold", "upsample", "zeropad2d",
]  # fmt: skip
