"""Linear maps, embeddings, dropout, padding and sizes as layers."""

from __future__ import annotations

from typing import Any

from .... import layers
from ....graph.variable import Variable
from ....layers._build import require
from ...arrange import unflatten
from ...linalg import norm
from ...tensor import flatten
from .. import functional as F
from .base import Layer
from .function import FunctionLayer


class Pad1D(Layer):
    """paddle.nn.functional.pad of 1 dimension as a layer; one integer pads all ends."""

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCL",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.padding, self.mode, self.value, self.data_format = padding, mode, value, data_format

    def forward(self, x: Variable) -> Variable:
        return F.pad(x, _each(self.padding, 1), self.mode, self.value, self.data_format)


class Pad2D(Layer):
    """paddle.nn.functional.pad of 2 dimensions as a layer; one integer pads all ends."""

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.padding, self.mode, self.value, self.data_format = padding, mode, value, data_format

    def forward(self, x: Variable) -> Variable:
        return F.pad(x, _each(self.padding, 2), self.mode, self.value, self.data_format)


class Pad3D(Layer):
    """paddle.nn.functional.pad of 3 dimensions as a layer; one integer pads all ends."""

    def __init__(
        self,
        padding: Any,
        mode: str = "constant",
        value: float = 0.0,
        data_format: str = "NCDHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.padding, self.mode, self.value, self.data_format = padding, mode, value, data_format

    def forward(self, x: Variable) -> Variable:
        return F.pad(x, _each(self.padding, 3), self.mode, self.value, self.data_format)


class Upsample(FunctionLayer):
    """paddle.nn.functional.interpolate as a layer."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool = False,
        align_mode: int = 0,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__(
            F.interpolate,
            size=size,
            scale_factor=scale_factor,
            mode=mode,
            align_corners=align_corners,
            align_mode=align_mode,
            data_format=data_format,
        )


class UpsamplingBilinear2D(Layer):
    """Images resized by bilinear interpolation with aligned corners."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.data_format = size, scale_factor, data_format

    def forward(self, x: Variable) -> Variable:
        return F.interpolate(x, self.size, self.scale_factor, "bilinear", True, 0, self.data_format)


class UpsamplingNearest2D(Layer):
    """Images resized by the nearest pixel."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.size, self.scale_factor, self.data_format = size, scale_factor, data_format

    def forward(self, x: Variable) -> Variable:
        return F.interpolate(x, self.size, self.scale_factor, "nearest", False, 0, self.data_format)


class AlphaDropout(Layer):
    """paddle.nn.functional.alpha_dropout as a layer."""

    def __init__(self, p: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Variable) -> Variable:
        return F.alpha_dropout(x, self.p, self.training)


class CosineSimilarity(FunctionLayer):
    """paddle.nn.functional.cosine_similarity as a layer."""

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__(F.cosine_similarity, axis=axis, eps=eps)


class Dropout(Layer):
    """paddle.nn.functional.dropout as a layer."""

    def __init__(
        self,
        p: float = 0.5,
        axis: Any = None,
        mode: str = "upscale_in_train",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.p, self.axis, self.mode = p, axis, mode

    def forward(self, x: Variable) -> Variable:
        return F.dropout(x, self.p, self.axis, self.training, self.mode)


class Dropout2D(Layer):
    """paddle.nn.functional.dropout2d as a layer."""

    def __init__(self, p: float = 0.5, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__()
        self.p, self.data_format = p, data_format

    def forward(self, x: Variable) -> Variable:
        return F.dropout2d(x, self.p, self.training, self.data_format)


class Dropout3D(Layer):
    """paddle.nn.functional.dropout3d as a layer."""

    def __init__(self, p: float = 0.5, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__()
        self.p, self.data_format = p, data_format

    def forward(self, x: Variable) -> Variable:
        return F.dropout3d(x, self.p, self.training, self.data_format)


class Flatten(Layer):
    """x with the dimensions from start_axis to stop_axis merged."""

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__()
        self.start_axis, self.stop_axis = start_axis, stop_axis

    def forward(self, x: Variable) -> Variable:
        return flatten(x, self.start_axis, self.stop_axis)


class PixelShuffle(FunctionLayer):
    """paddle.nn.functional.pixel_shuffle as a layer."""

    def __init__(
        self, upscale_factor: int, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__(F.pixel_shuffle, upscale_factor=upscale_factor, data_format=data_format)


class PairwiseDistance(Layer):
    """The p-norm of x - y + epsilon, row by row."""

    def __init__(
        self, p: float = 2.0, epsilon: float = 1e-6, keepdim: bool = False, name: str | None = None
    ) -> None:
        super().__init__()
        self.p, self.epsilon, self.keepdim = p, epsilon, keepdim

    def forward(self, x: Variable, y: Variable) -> Variable:
        return norm(
            layers.scale(layers.elementwise_sub(x, y), 1.0, self.epsilon), self.p, -1, self.keepdim
        )


class Linear(Layer):
    """x @ weight + bias, with trained weight [in_features, out_features] and bias [out_features]
    (bias_attr=False: none).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.bias = self.create_parameter([out_features], bias_attr, is_bias=True)

    def forward(self, input: Variable) -> Variable:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.weight.shape[0]}, out_features={self.weight.shape[1]}"


class Bilinear(Layer):
    """paddle.nn.functional.bilinear with trained weight [out_features, in1_features, in2_features]
    and bias [1, out_features].
    """

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, weight_attr: Any = None, bias_attr: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr)
        self.bias = self.create_parameter([1, out_features], bias_attr, is_bias=True)

    def forward(self, x1: Variable, x2: Variable) -> Variable:
        return F.bilinear(x1, x2, self.weight, self.bias)


class Embedding(Layer):
    """Rows of a trained table [num_embeddings, embedding_dim] by ids; the row padding_idx reads as
    zeros.

    sparse: the gradient has only the batch's rows. Raises FluidValueError for a padding_idx that is
    not a row.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, sparse: bool = False, weight_attr: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        fits = padding_idx is None or -num_embeddings <= padding_idx < num_embeddings
        require(fits, f"Embedding's padding_idx {padding_idx} is not one of {num_embeddings} rows")
        self.padding_idx, self.sparse = padding_idx, sparse
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr)

    def forward(self, x: Variable) -> Variable:
        return F.embedding(x, self.weight, self.padding_idx, self.sparse)


def _each(padding: Any, n: int) -> list[int]:
    return [padding] * 2 * n if isinstance(padding, int) else list(padding)


class Identity(Layer):
    """Returns its input; arguments of any kind are accepted and ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Variable) -> Variable:
        return input


class Unflatten(Layer):
    """One dimension of x split into several: paddle.unflatten as a layer."""

    def __init__(self, axis: int, shape: Any, name: str | None = None) -> None:
        super().__init__()
        self.axis, self.shape = axis, shape

    def forward(self, x: Variable) -> Variable:
        return unflatten(x, self.axis, self.shape)


class FeatureAlphaDropout(Layer):
    """paddle.nn.functional.feature_alpha_dropout as a layer."""

    def __init__(self, p: float = 0.5, name: str | None = None) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Variable) -> Variable:
        return F.feature_alpha_dropout(x, self.p, self.training)


class PixelUnshuffle(FunctionLayer):
    """paddle.nn.functional.pixel_unshuffle as a layer."""

    def __init__(
        self, downscale_factor: int, data_format: str = "NCHW", name: str | None = None
    ) -> None:
        super().__init__(
            F.pixel_unshuffle, downscale_factor=downscale_factor, data_format=data_format
        )


class ChannelShuffle(FunctionLayer):
    """paddle.nn.functional.channel_shuffle as a layer."""

    def __init__(self, groups: int, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(F.channel_shuffle, groups=groups, data_format=data_format)


class ZeroPad1D(Pad1D):
    """Zeros at the ends of 1 dimension; one integer pads all ends."""

    def __init__(self, padding: Any, data_format: str = "NCL", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)


class ZeroPad2D(Pad2D):
    """Zeros at the ends of 2 dimensions; one integer pads all ends."""

    def __init__(self, padding: Any, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)


class ZeroPad3D(Pad3D):
    """Zeros at the ends of 3 dimensions; one integer pads all ends."""

    def __init__(self, padding: Any, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(padding, "constant", 0.0, data_format, name)


__all__ = [
    "AlphaDropout",
    "Bilinear",
    "ChannelShuffle",
    "CosineSimilarity",
    "Dropout",
    "Dropout2D",
    "Dropout3D",
    "Embedding",
    "FeatureAlphaDropout",
    "Flatten",
    "Identity",
    "Linear",
    "Pad1D",
    "Pad2D",
    "Pad3D",
    "PairwiseDistance",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
    "Upsample",
    "UpsamplingBilinear2D",
    "UpsamplingNearest2D",
    "ZeroPad1D",
    "ZeroPad2D",
    "ZeroPad3D",
]  # fmt: skip
