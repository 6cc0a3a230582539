"""Losses by margins, distances and likelihoods as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from .. import functional as F
from .base import Layer


class CosineEmbeddingLoss(Layer):
    """paddle.nn.functional.cosine_embedding_loss as a layer."""

    def __init__(self, margin: float = 0, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.margin, self.reduction = margin, reduction

    def forward(self, input1: Variable, input2: Variable, label: Variable) -> Variable:
        return F.cosine_embedding_loss(input1, input2, label, self.margin, self.reduction)


class GaussianNLLLoss(Layer):
    """paddle.nn.functional.gaussian_nll_loss as a layer."""

    def __init__(
        self,
        full: bool = False,
        epsilon: float = 1e-6,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.full, self.epsilon, self.reduction = full, epsilon, reduction

    def forward(self, input: Variable, label: Variable, variance: Variable) -> Variable:
        return F.gaussian_nll_loss(input, label, variance, self.full, self.epsilon, self.reduction)


class HingeEmbeddingLoss(Layer):
    """paddle.nn.functional.hinge_embedding_loss as a layer."""

    def __init__(
        self, margin: float = 1.0, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__()
        self.margin, self.reduction = margin, reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.hinge_embedding_loss(input, label, self.margin, self.reduction)


class MultiLabelMarginLoss(Layer):
    """paddle.nn.functional.multi_label_margin_loss as a layer."""

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.multi_label_margin_loss(input, label, self.reduction)


class MultiLabelSoftMarginLoss(Layer):
    """paddle.nn.functional.multi_label_soft_margin_loss as a layer."""

    def __init__(
        self, weight: Variable | None = None, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__()
        self.weight, self.reduction = weight, reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.multi_label_soft_margin_loss(input, label, self.weight, self.reduction)


class MultiMarginLoss(Layer):
    """paddle.nn.functional.multi_margin_loss as a layer."""

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Variable | None = None, reduction: str = "mean",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.p, self.margin, self.weight, self.reduction = p, margin, weight, reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.multi_margin_loss(input, label, self.p, self.margin, self.weight, self.reduction)


class PoissonNLLLoss(Layer):
    """paddle.nn.functional.poisson_nll_loss as a layer."""

    def __init__(
        self, log_input: bool = True, full: bool = False, epsilon: float = 1e-8, reduction: str = "mean",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.log_input, self.full, self.epsilon, self.reduction = (
            log_input,
            full,
            epsilon,
            reduction,
        )

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.poisson_nll_loss(
            input, label, self.log_input, self.full, self.epsilon, self.reduction
        )


class SoftMarginLoss(Layer):
    """paddle.nn.functional.soft_margin_loss as a layer."""

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, input: Variable, label: Variable) -> Variable:
        return F.soft_margin_loss(input, label, self.reduction)


class TripletMarginLoss(Layer):
    """paddle.nn.functional.triplet_margin_loss as a layer."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, epsilon: float = 1e-6, swap: bool = False, reduction: str = "mean",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.margin, self.p, self.epsilon, self.swap, self.reduction = (
            margin,
            p,
            epsilon,
            swap,
            reduction,
        )

    def forward(self, input: Variable, positive: Variable, negative: Variable) -> Variable:
        return F.triplet_margin_loss(
            input, positive, negative, self.margin, self.p, self.epsilon, self.swap, self.reduction
        )


class TripletMarginWithDistanceLoss(Layer):
    """paddle.nn.functional.triplet_margin_with_distance_loss as a layer."""

    def __init__(
        self, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.distance_function, self.margin, self.swap, self.reduction = (
            distance_function,
            margin,
            swap,
            reduction,
        )

    def forward(self, input: Variable, positive: Variable, negative: Variable) -> Variable:
        return F.triplet_margin_with_distance_loss(
            input,
            positive,
            negative,
            self.distance_function,
            self.margin,
            self.swap,
            self.reduction,
        )


__all__ = [
    "CosineEmbeddingLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "PoissonNLLLoss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip
