"""Normalisation as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from ....initializer import Constant, Normal
from ....layer_helper import LayerHelper
from ....layers._build import append
from ....param_attr import ParamAttr
from .. import functional as F
from .base import Layer


def _scale_and_bias(
    layer: Layer, shape: list[int], weight_attr: Any, bias_attr: Any
) -> tuple[Any, Any]:
    """A trained scale, initially 1, and bias, initially 0; constant if an attribute is False."""
    scale = layer.create_parameter(
        shape, None if weight_attr is False else weight_attr, default_initializer=Constant(1.0)
    )
    bias = layer.create_parameter(shape, None if bias_attr is False else bias_attr, is_bias=True)
    for parameter, attr in ((scale, weight_attr), (bias, bias_attr)):
        if attr is False:
            parameter.stop_gradient, parameter.trainable = True, False
    return scale, bias


class _BatchNorm(Layer):
    """batch_norm with trained scale and bias, and running statistics that forward updates in
    training.
    """

    def __init__(
        self, num_features: int, momentum: float, epsilon: float, weight_attr: Any, bias_attr: Any, data_format: str,
        use_global_stats: bool | None, names: tuple[str | None, str | None] = (None, None), average: bool = True, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype)
        self.momentum, self.epsilon, self.data_format, self.use_global_stats = (
            momentum,
            epsilon,
            data_format,
            use_global_stats,
        )
        self.weight, self.bias = _scale_and_bias(self, [num_features], weight_attr, bias_attr)
        for attribute, name, begin in (("_mean", names[0], 0.0), ("_variance", names[1], 1.0)):
            attr = ParamAttr(name, Constant(begin), trainable=False, do_model_average=average)
            statistic = self.create_parameter([num_features], attr)
            statistic.stop_gradient = True
            setattr(self, attribute, statistic)

    def forward(self, x: Variable) -> Variable:
        return F.batch_norm(x, self._mean, self._variance, self.weight, self.bias, self.training, self.momentum, self.epsilon,
                            self.data_format, self.use_global_stats)  # fmt: skip


class BatchNorm1D(_BatchNorm):
    """paddle.nn.functional.batch_norm with trained scale and bias and running statistics; train()
    and eval() switch it.
    """

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCL", use_global_stats: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features,
            momentum,
            epsilon,
            weight_attr,
            bias_attr,
            data_format,
            use_global_stats,
            _statistics(name),
        )


class BatchNorm2D(_BatchNorm):
    """paddle.nn.functional.batch_norm with trained scale and bias and running statistics; train()
    and eval() switch it.
    """

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCHW", use_global_stats: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features,
            momentum,
            epsilon,
            weight_attr,
            bias_attr,
            data_format,
            use_global_stats,
            _statistics(name),
        )


class BatchNorm3D(_BatchNorm):
    """paddle.nn.functional.batch_norm with trained scale and bias and running statistics; train()
    and eval() switch it.
    """

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCDHW", use_global_stats: bool | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features,
            momentum,
            epsilon,
            weight_attr,
            bias_attr,
            data_format,
            use_global_stats,
            _statistics(name),
        )


def _statistics(name: str | None) -> tuple[str | None, str | None]:
    return (None, None) if name is None else (f"{name}_mean", f"{name}_variance")


class SyncBatchNorm(_BatchNorm):
    """BatchNorm2D with statistics over the batches of all ranks: the op is sync_batch_norm."""

    def __init__(
        self, num_features: int, momentum: float = 0.9, epsilon: float = 1e-05, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCHW", name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features,
            momentum,
            epsilon,
            weight_attr,
            bias_attr,
            data_format,
            None,
            _statistics(name),
        )

    def forward(self, x: Variable) -> Variable:
        inputs = {
            "X": x,
            "Scale": self.weight,
            "Bias": self.bias,
            "Mean": self._mean,
            "Variance": self._variance,
        }
        attrs = {
            "momentum": self.momentum, "epsilon": self.epsilon, "is_test": not self.training,
            "data_layout": "NHWC" if self.data_format.endswith("C") and len(self.data_format) > 2 else "NCHW",
        }  # fmt: skip
        outs = {
            "Y": x.dtype, "MeanOut": self._mean, "VarianceOut": self._variance, "SavedMean": self._mean.dtype,
            "SavedVariance": self._mean.dtype,
        }  # fmt: skip
        return append(
            LayerHelper("sync_batch_norm"), inputs, outs, attrs, stop="SavedMean SavedVariance"
        )[0]

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """`layer` with every batch norm replaced by a SyncBatchNorm; parameters and statistics are
        the same variables.
        """
        if isinstance(layer, _BatchNorm) and not isinstance(layer, cls):
            made = cls.__new__(cls)
            vars(made).update(vars(layer))
            return made
        for name, below in list(layer.named_children()):
            layer.add_sublayer(name, cls.convert_sync_batchnorm(below))
        return layer


class BatchNorm(_BatchNorm):
    """Batch normalisation with the arguments of 1.8.5's layer: an activation by name, names of the
    running statistics.

    is_test decides whether the running statistics are used; in static mode train() and eval() do
    not, as in Paddle.
    """

    def __init__(
        self, num_channels: int, act: str | None = None, is_test: bool = False, momentum: float = 0.9, epsilon: float = 1e-05,
        param_attr: Any = None, bias_attr: Any = None, dtype: Any = "float32", data_layout: str = "NCHW", in_place: bool = False,
        moving_mean_name: str | None = None, moving_variance_name: str | None = None, do_model_average_for_mean_and_var: bool = True,
        use_global_stats: bool = False, trainable_statistics: bool = False,
    ) -> None:  # fmt: skip
        names = (moving_mean_name, moving_variance_name)
        super().__init__(num_channels, momentum, epsilon, param_attr, bias_attr, data_layout, use_global_stats or None, names,
                         do_model_average_for_mean_and_var, dtype)  # fmt: skip
        self.act, self.by_batch = act, not is_test or trainable_statistics

    def forward(self, input: Variable) -> Variable:
        out = F.batch_norm(input, self._mean, self._variance, self.weight, self.bias, self.by_batch, self.momentum, self.epsilon,
                           self.data_format, self.use_global_stats)  # fmt: skip
        return LayerHelper("batch_norm", act=self.act).append_activation(out)


class InstanceNorm1D(Layer):
    """paddle.nn.functional.instance_norm with trained scale and bias; without both if an attribute
    is False.
    """

    def __init__(
        self, num_features: int, epsilon: float = 1e-05, momentum: float = 0.9, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCL", name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.epsilon, self.data_format, self.scale, self.bias = epsilon, data_format, None, None
        if weight_attr is not False and bias_attr is not False:
            self.scale, self.bias = _scale_and_bias(self, [num_features], weight_attr, bias_attr)

    def forward(self, input: Variable) -> Variable:
        return F.instance_norm(
            input, weight=self.scale, bias=self.bias, eps=self.epsilon, data_format=self.data_format
        )


class InstanceNorm2D(InstanceNorm1D):
    """paddle.nn.functional.instance_norm with trained scale and bias; without both if an attribute
    is False.
    """

    def __init__(
        self, num_features: int, epsilon: float = 1e-05, momentum: float = 0.9, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCHW", name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class InstanceNorm3D(InstanceNorm1D):
    """paddle.nn.functional.instance_norm with trained scale and bias; without both if an attribute
    is False.
    """

    def __init__(
        self, num_features: int, epsilon: float = 1e-05, momentum: float = 0.9, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCDHW", name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class LayerNorm(Layer):
    """paddle.nn.functional.layer_norm over the last dimensions, with trained scale and bias (False:
    none) of as many elements.
    """

    def __init__(
        self,
        normalized_shape: Any,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            list(normalized_shape)
            if isinstance(normalized_shape, list | tuple)
            else [normalized_shape]
        )
        self.epsilon = epsilon
        count = 1
        for size in self.normalized_shape:
            count *= size
        self.weight = self.create_parameter([count], weight_attr, default_initializer=Constant(1.0))
        self.bias = self.create_parameter([count], bias_attr, is_bias=True)

    def forward(self, input: Variable) -> Variable:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.epsilon)


class GroupNorm(Layer):
    """paddle.nn.functional.group_norm with trained scale and bias; constant if an attribute is
    False.
    """

    def __init__(
        self, num_groups: int, num_channels: int, epsilon: float = 1e-05, weight_attr: Any = None, bias_attr: Any = None,
        data_format: str = "NCHW", name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_groups, self.epsilon, self.data_format = num_groups, epsilon, data_format
        self.weight, self.bias = _scale_and_bias(self, [num_channels], weight_attr, bias_attr)

    def forward(self, input: Variable) -> Variable:
        return F.group_norm(
            input, self.num_groups, self.epsilon, self.weight, self.bias, self.data_format
        )


class LocalResponseNorm(Layer):
    """paddle.nn.functional.local_response_norm as a layer."""

    def __init__(
        self,
        size: int,
        alpha: float = 0.0001,
        beta: float = 0.75,
        k: float = 1.0,
        data_format: str = "NCHW",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k, self.data_format = (
            size,
            alpha,
            beta,
            k,
            data_format,
        )

    def forward(self, input: Variable) -> Variable:
        return F.local_response_norm(
            input, self.size, self.alpha, self.beta, self.k, self.data_format
        )


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, estimated by power_iters steps from two
    vectors of the layer.
    """

    def __init__(
        self,
        weight_shape: Any,
        dim: int = 0,
        power_iters: int = 1,
        eps: float = 1e-12,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self.dim, self.power_iters, self.eps = dim, power_iters, eps
        rows = weight_shape[dim]
        columns = 1
        for at, size in enumerate(weight_shape):
            columns *= 1 if at == dim else size
        self.weight_u = self.create_parameter([rows], default_initializer=Normal(0.0, 1.0))
        self.weight_v = self.create_parameter([columns], default_initializer=Normal(0.0, 1.0))
        for vector in (self.weight_u, self.weight_v):
            vector.stop_gradient, vector.trainable = True, False

    def forward(self, x: Variable) -> Variable:
        attrs = {"dim": self.dim, "power_iters": self.power_iters, "eps": self.eps}
        return append(
            LayerHelper("spectral_norm"),
            {"Weight": x, "U": self.weight_u, "V": self.weight_v},
            {"Out": x.dtype},
            attrs,
        )


__all__ = [
    "BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "GroupNorm", "InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D",
    "LayerNorm", "LocalResponseNorm", "SpectralNorm", "SyncBatchNorm",
]  # fmt: skip
