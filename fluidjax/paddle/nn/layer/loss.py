"""Losses as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from .. import functional as F
from .base import Layer
from .function import FunctionLayer


class BCELoss(FunctionLayer, function=F.binary_cross_entropy, inputs=2):
    """paddle.nn.functional.binary_cross_entropy as a layer."""


class BCEWithLogitsLoss(FunctionLayer, function=F.binary_cross_entropy_with_logits, inputs=2):
    """paddle.nn.functional.binary_cross_entropy_with_logits as a layer."""


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


class CrossEntropyLoss(FunctionLayer, function=F.cross_entropy, inputs=2):
    """paddle.nn.functional.cross_entropy as a layer."""


class KLDivLoss(Layer):
    """paddle.nn.functional.kl_div as a layer."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.kl_div(input, label, self.reduction)


class L1Loss(FunctionLayer, function=F.l1_loss, inputs=2):
    """paddle.nn.functional.l1_loss as a layer."""


class MSELoss(Layer):
    """paddle.nn.functional.mse_loss as a layer."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.mse_loss(input, label, self.reduction)


class MarginRankingLoss(FunctionLayer, function=F.margin_ranking_loss, inputs=3):
    """paddle.nn.functional.margin_ranking_loss as a layer."""


class NLLLoss(FunctionLayer, function=F.nll_loss, inputs=2):
    """paddle.nn.functional.nll_loss as a layer."""


class SmoothL1Loss(FunctionLayer, function=F.smooth_l1_loss, inputs=2):
    """paddle.nn.functional.smooth_l1_loss as a layer."""


class HSigmoidLoss(Layer):
    """paddle.nn.functional.hsigmoid_loss with trained weights [num_classes - 1, feature_size] and
    bias [num_classes - 1, 1].

    is_custom: paths are given, and weights are as many as num_classes.
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
