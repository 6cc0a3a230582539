"""Losses as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from .. import functional as F
from .base import Layer
from .function import FunctionLayer


class BCELoss(FunctionLayer):
    """paddle.nn.functional.binary_cross_entropy as a layer."""

    def __init__(
        self, weight: Variable | None = None, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__(F.binary_cross_entropy, weight=weight, reduction=reduction)


class BCEWithLogitsLoss(FunctionLayer):
    """paddle.nn.functional.binary_cross_entropy_with_logits as a layer."""

    def __init__(
        self,
        weight: Variable | None = None,
        reduction: str = "mean",
        pos_weight: Variable | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            F.binary_cross_entropy_with_logits,
            weight=weight,
            reduction=reduction,
            pos_weight=pos_weight,
        )


class CTCLoss(Layer):
    """paddle.nn.functional.ctc_loss as a layer."""

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__()
        self.blank, self.reduction = blank, reduction

    def forward(
        self,
        log_probs: Variable,
        labels: Variable,
        input_lengths: Variable,
        label_lengths: Variable,
        norm_by_times: bool = False,
    ) -> Variable:
        return F.ctc_loss(
            log_probs,
            labels,
            input_lengths,
            label_lengths,
            self.blank,
            self.reduction,
            norm_by_times,
        )


class CrossEntropyLoss(FunctionLayer):
    """paddle.nn.functional.cross_entropy as a layer."""

    def __init__(
        self,
        weight: Variable | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        soft_label: bool = False,
        axis: int = -1,
        use_softmax: bool = True,
        label_smoothing: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__(
            F.cross_entropy,
            weight=weight,
            ignore_index=ignore_index,
            reduction=reduction,
            soft_label=soft_label,
            axis=axis,
            use_softmax=use_softmax,
            label_smoothing=label_smoothing,
        )


class KLDivLoss(Layer):
    """paddle.nn.functional.kl_div as a layer."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.kl_div(input, label, self.reduction)


class L1Loss(FunctionLayer):
    """paddle.nn.functional.l1_loss as a layer."""

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(F.l1_loss, reduction=reduction)


class MSELoss(Layer):
    """paddle.nn.functional.mse_loss as a layer."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.mse_loss(input, label, self.reduction)


class MarginRankingLoss(FunctionLayer):
    """paddle.nn.functional.margin_ranking_loss as a layer."""

    def __init__(
        self, margin: float = 0.0, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__(F.margin_ranking_loss, margin=margin, reduction=reduction)


class NLLLoss(FunctionLayer):
    """paddle.nn.functional.nll_loss as a layer."""

    def __init__(
        self,
        weight: Variable | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(F.nll_loss, weight=weight, ignore_index=ignore_index, reduction=reduction)


class SmoothL1Loss(FunctionLayer):
    """paddle.nn.functional.smooth_l1_loss as a layer."""

    def __init__(
        self, reduction: str = "mean", delta: float = 1.0, name: str | None = None
    ) -> None:
        super().__init__(F.smooth_l1_loss, reduction=reduction, delta=delta)


class HSigmoidLoss(Layer):
    """paddle.nn.functional.hsigmoid_loss with trained weights [num_classes - 1, feature_size] and
    bias [num_classes - 1, 1].

    is_custom: the paths are inputs, and there are num_classes weights.
    """

    def __init__(
        self, feature_size: int, num_classes: int, weight_attr: Any = None, bias_attr: Any = None, is_custom: bool = False,
        is_sparse: bool = False, name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_classes, self.is_custom, self.is_sparse = num_classes, is_custom, is_sparse
        count = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([count, feature_size], weight_attr)
        self.bias = self.create_parameter([count, 1], bias_attr, is_bias=True)

    def forward(
        self,
        input: Variable,
        label: Variable,
        path_table: Variable | None = None,
        path_code: Variable | None = None,
    ) -> Variable:
        return F.hsigmoid_loss(
            input,
            label,
            self.num_classes,
            self.weight,
            self.bias,
            path_table,
            path_code,
            is_sparse=self.is_sparse,
        )


__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CrossEntropyLoss", "HSigmoidLoss", "KLDivLoss", "L1Loss", "MSELoss",
    "MarginRankingLoss", "NLLLoss", "SmoothL1Loss",
]  # fmt: skip
