"""Losses by margins, distances and likelihoods as layers."""

from __future__ import annotations

from typing import Any

from ....graph.variable import Variable
from .. import functional as F
from .function import FunctionLayer


class CosineEmbeddingLoss(FunctionLayer):
    """paddle.nn.functional.cosine_embedding_loss as a layer."""

    def __init__(self, margin: float = 0, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(F.cosine_embedding_loss, margin=margin, reduction=reduction)


class GaussianNLLLoss(FunctionLayer):
    """paddle.nn.functional.gaussian_nll_loss as a layer."""

    def __init__(
        self,
        full: bool = False,
        epsilon: float = 1e-6,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__(F.gaussian_nll_loss, full=full, epsilon=epsilon, reduction=reduction)


class HingeEmbeddingLoss(FunctionLayer):
    """paddle.nn.functional.hinge_embedding_loss as a layer."""

    def __init__(
        self, margin: float = 1.0, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__(F.hinge_embedding_loss, margin=margin, reduction=reduction)


class MultiLabelMarginLoss(FunctionLayer):
    """paddle.nn.functional.multi_label_margin_loss as a layer."""

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(F.multi_label_margin_loss, reduction=reduction)


class MultiLabelSoftMarginLoss(FunctionLayer):
    """paddle.nn.functional.multi_label_soft_margin_loss as a layer."""

    def __init__(
        self, weight: Variable | None = None, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__(F.multi_label_soft_margin_loss, weight=weight, reduction=reduction)


class MultiMarginLoss(FunctionLayer):
    """paddle.nn.functional.multi_margin_loss as a layer."""

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: Variable | None = None, reduction: str = "mean",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.multi_margin_loss, p=p, margin=margin, weight=weight, reduction=reduction
        )


class PoissonNLLLoss(FunctionLayer):
    """paddle.nn.functional.poisson_nll_loss as a layer."""

    def __init__(
        self, log_input: bool = True, full: bool = False, epsilon: float = 1e-8, reduction: str = "mean",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.poisson_nll_loss, log_input=log_input, full=full, epsilon=epsilon, reduction=reduction
        )


class SoftMarginLoss(FunctionLayer):
    """paddle.nn.functional.soft_margin_loss as a layer."""

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__(F.soft_margin_loss, reduction=reduction)


class TripletMarginLoss(FunctionLayer):
    """paddle.nn.functional.triplet_margin_loss as a layer."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, epsilon: float = 1e-6, swap: bool = False, reduction: str = "mean",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.triplet_margin_loss,
            margin=margin,
            p=p,
            epsilon=epsilon,
            swap=swap,
            reduction=reduction,
        )


class TripletMarginWithDistanceLoss(FunctionLayer):
    """paddle.nn.functional.triplet_margin_with_distance_loss as a layer."""

    def __init__(
        self, distance_function: Any = None, margin: float = 1.0, swap: bool = False, reduction: str = "mean",
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            F.triplet_margin_with_distance_loss,
            distance_function=distance_function,
            margin=margin,
            swap=swap,
            reduction=reduction,
        )


__all__ = [
    "CosineEmbeddingLoss", "GaussianNLLLoss", "HingeEmbeddingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
    "MultiMarginLoss", "PoissonNLLLoss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip
